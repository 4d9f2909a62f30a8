/** The simulator's `deafen` fault: a subscription stays open but delivers no messages. */
import type * as MutexStore from "@effect-simba/core/MutexStore"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { RedisMutex } from "@effect-simba/redis"
import { type Checker, Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Queue } from "effect"
import { Redis } from "effect/persistence/Redis"
import { loadOf, mutexPlan, program } from "../simulate/mutexPlan.ts"

/** A broken store that ignores gaps in its subscription, so it does not poll when it has missed messages. */
const ignoresGaps = RedisMutex.layerStore.pipe(Layer.provide(Layer.effect(
  Subscriber,
  Effect.map(Subscriber, (real) => ({
    ...real,
    listen: (channel: string, listener: (text: string | undefined) => void) =>
      real.listen!(channel, (text) => text === undefined ? undefined : listener(text))
  }))
))) as Layer.Layer<MutexStore.MutexStore, Layer.Error<typeof RedisMutex.layerStore>, Redis | Subscriber>

/** The maximum time from the end of a client's deafness to its waiters' polls, in milliseconds. */
const within = 1000

const asksWhenItHears: Checker.Checker = {
  name: "polls after resubscribing",
  start: (view) => {
    const { lock } = view
    const queued = new Map<string, string>()
    const due = new Map<string, number>()
    const waits = (client: string) => [...queued.values()].includes(client)
    view.every(50, () => {
      for (const [client, at] of due) {
        if (!waits(client)) due.delete(client)
        else if (view.now() > at) view.violated(`${client} waits, but has not polled since it resubscribed`)
      }
    })
    return {
      onEvent: (event) => {
        if (event._tag === "Command") {
          const { args, client, reply } = event.command
          if ([lock.asked?.(args, reply) ?? []].flat().length > 0) due.delete(client)
          for (const { id } of [lock.queued?.(args, reply) ?? []].flat()) queued.set(id, client)
          for (const { id } of [lock.released?.(args, reply) ?? []].flat()) queued.delete(id)
        }
        if (event._tag === "Note" && event.kind === "granted") queued.delete(String(event.fields["id"]))
        if (event._tag !== "Fault" || event.fault !== "deafen") return
        if (event.text === "over" && waits(event.target)) due.set(event.target, event.at + within)
        else due.delete(event.target)
      }
    }
  }
}

describe("a deaf process", () => {
  it.effect("a deaf client misses messages while its subscription is open, and then receives a gap", () =>
    Effect.gen(function*() {
      const publish = (client: Simulation.Client) =>
        Effect.gen(function*() {
          const redis = yield* Redis
          for (let message = 1; message <= 100; message++) {
            const heardBy = yield* redis.send<number>("PUBLISH", "news", String(message))
            client.note("published", { message, heardBy })
            yield* Effect.sleep("100 millis")
          }
        })
      const hear = (client: Simulation.Client) =>
        Effect.gen(function*() {
          const notices = yield* (yield* Subscriber).subscribe("news")
          const notice = Queue.take(notices)
          return yield* Effect.forever(Effect.map(notice, (notice) => {
            client.note(notice._tag === "Gap" ? "gap" : "heard", notice._tag === "Gap" ? {} : { message: notice.text })
          }))
        }).pipe(Effect.scoped)
      const notes = (enabled: ReadonlyArray<"deafen">) =>
        Effect.map(
          Simulation.run({
            seed: 1,
            clients: 2,
            program: (client): Effect.Effect<void, unknown, Redis | Subscriber> =>
              client.index === 0 ? publish(client) : hear(client),
            lock: { resources: [], ownerKey: (resource) => resource },
            checkers: [],
            faults: { deafen: { every: 3000, lasts: [500, 1000] } },
            enabled,
            network: { requestDelay: [0, 0], replyDelay: [0, 0] },
            duration: "12 seconds"
          }),
          ({ events }) =>
            events.flatMap((event) =>
              event._tag === "Fault" && event.target === "c2" && event.fault === "deafen"
                ? [event.text === "over" ? "over" : "deaf"]
                : event._tag === "Note" && ["gap", "heard"].includes(event.kind)
                ? [event.kind]
                : event._tag === "Note" && event.kind === "published"
                ? [event.fields["heardBy"] === 1 ? "published" : "published to nobody"]
                : []
            )
        )
      const undisturbed = yield* notes([])
      const count = (wanted: string) => undisturbed.filter((note) => note === wanted).length
      assert.isAtLeast(count("published"), 99, "the first message may have preceded the subscription")
      assert.strictEqual(count("heard"), count("published"))
      assert.notInclude(undisturbed, "gap")
      const disturbed = yield* notes(["deafen"])
      const missed = disturbed.slice(disturbed.indexOf("deaf"), disturbed.indexOf("over"))
      assert.include(missed, "published", "the server still counts the subscriber")
      assert.notInclude(missed, "heard")
      const later = disturbed.slice(disturbed.indexOf("over")).filter((note) => note === "gap" || note === "heard")
      assert.deepStrictEqual(later.slice(0, 2), ["gap", "heard"])
    }))

  it.effect("waiters poll after resubscribing; unlike late messages, deafness exposes a store that does not poll", () =>
    Effect.gen(function*() {
      const settings = {
        ...loadOf(1).settings,
        ...{ resources: ["a"], workers: 2, rest: 50, contenders: 0, forces: 0, localTurn: 0 }
      }
      const found = (enabled: ReadonlyArray<keyof Simulation.Faults>, busy: ReturnType<typeof program>) =>
        Effect.map(
          Effect.forEach([1, 2, 3, 4], (seed) =>
            Simulation.run(mutexPlan(seed, {
              enabled,
              checkers: [asksWhenItHears, ...mutexPlan(seed).checkers],
              program: busy
            }))),
          (results) => [...new Set(results.flatMap(({ violations }) => violations.map(({ checker }) => checker)))]
        )
      assert.deepStrictEqual(yield* found(["deafen"], program(settings)), [])
      assert.deepStrictEqual(yield* found(["deafen"], program(settings, ignoresGaps)), [asksWhenItHears.name])
      assert.deepStrictEqual(yield* found(["messageDelay"], program(settings, ignoresGaps)), [])
    }))
})
