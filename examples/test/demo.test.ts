/** Runs the mutex demo in virtual time, and checks that its report detects violations. */
import { Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Queue, Random, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { readFileSync, writeFileSync } from "node:fs"
import { direct } from "../demo/director.ts"
import type { Event } from "../demo/events.ts"
import type { Fleet } from "../demo/fleet.ts"
import { startOf } from "../demo/history.ts"
import * as memoryFleet from "../demo/memoryFleet.ts"
import { picture } from "../demo/picture.ts"
import * as plan from "../demo/plan.ts"
import * as report from "../demo/report.ts"
import { timeline } from "../demo/timeline.ts"
import { run } from "../demo/worker.ts"

const page = new URL("../../docs/demo.svg", import.meta.url)

const rehearsal = Effect.fnUntraced(function*(
  change: (fleet: Fleet) => Effect.Effect<Fleet, never, Scope.Scope> = Effect.succeed
) {
  const fleet = yield* Effect.flatMap(memoryFleet.make, change)
  const play = yield* Effect.forkChild(direct(fleet, () => Effect.void))
  yield* TestClock.adjust(plan.limit)
  return yield* Fiber.join(play)
})

const failing = (history: ReadonlyArray<Event>) =>
  report.checks(history).filter(([, holds]) => !holds).map(([claim]) => claim)

describe("the demo", () => {
  it.effect("every claim holds when the workers share one process", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal()
      assert.deepStrictEqual(failing(history), [])
      assert.lengthOf(timeline(history), plan.workers.length + 3)
      assert.lengthOf(report.summary(history), 2)
    }))

  it.effect("the picture in the examples guide is up to date: `UPDATE_DOCS=1` writes it", () =>
    Effect.gen(function*() {
      const drawn = picture(yield* rehearsal())
      if (process.env["UPDATE_DOCS"] !== undefined) writeFileSync(page, drawn)
      assert.strictEqual(readFileSync(page, "utf8"), drawn)
    }).pipe(Random.withSeed("the picture of the README")))

  it.effect("no worker leads before all have started", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal(Effect.fnUntraced(function*(fleet) {
        const events = yield* Queue.unbounded<Event>()
        const pass = Effect.gen(function*() {
          const event = yield* Queue.take(fleet.events)
          if (event.worker === "eve" && event._tag === "Waiting" && event.term === 1) yield* Effect.sleep("20 seconds")
          yield* Queue.offer(events, event)
        })
        yield* Effect.forkScoped(Effect.forever(pass))
        return { ...fleet, events }
      }))
      assert.deepStrictEqual(failing(history), [])
      assert.isAtLeast(report.termsOf(history)[0]!.from - startOf(history), 20_000)
    }))

  it.effect("the recorded time of a crash is just before the kill, not when the director noticed it", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal((fleet) =>
        Effect.succeed({
          ...fleet,
          crash: (worker) => Effect.andThen(fleet.crash(worker), Effect.sleep("4 seconds"))
        })
      )
      assert.deepStrictEqual(failing(history), [])
      // By now the store has the next leader's lease, so the summary cannot report when the old lease ended
      assert.match(report.summary(history)[1]!, /^Crash: \w+ took over \d+ ms later$/)
    }))

  it.effect("a worker that loses its lease reports the end of its work", () =>
    Effect.gen(function*() {
      const store = Context.get(yield* Layer.build(MutexStore.layerMemory), MutexStore.MutexStore)
      const history: Array<Event> = []
      const inTerm = <Tag extends "Leading" | "Leaving">(tag: Tag) =>
        history.find((event): event is Extract<Event, { readonly _tag: Tag }> =>
          event._tag === tag && event.term === plan.crash.term
        )
      // During the term that outlasts a lease, the store stops replying until the lease is lost
      const lost = () => history.find(({ _tag }) => _tag === "Lost")
      const silent = memoryFleet.mortal(store, () => inTerm("Leading") !== undefined && lost() === undefined)
      const mutexes = Mutex.layer(plan.options).pipe(Layer.provide(Layer.succeed(MutexStore.MutexStore, silent)))
      const worker = yield* Effect.forkChild(run(plan.crash.worker, mutexes, (event) => history.push(event)))
      yield* TestClock.adjust(plan.limit)
      yield* Fiber.join(worker)
      const { transition, ttl } = plan.options
      const lease = Duration.sum(Duration.fromInputUnsafe(ttl), Duration.fromInputUnsafe(transition))
      assert.isBelow(inTerm("Leaving")!.at - inTerm("Leading")!.at, Duration.toMillis(lease))
      assert.isAtLeast(lost()!.at, inTerm("Leaving")!.at)
    }))

  it.effect("detects two leaders, and tokens that do not grow", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal()
      const second = report.termsOf(history)[1]!
      const earlier = history.map((event) =>
        event._tag === "Leading" && event.token === second.token ? { ...event, at: event.at - 100, token: 1 } : event
      )
      assert.lengthOf(failing(earlier), 2)
    }))

  it.effect("detects that nobody took over", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal()
      const crash = report.crashOf(history)!
      const others = plan.workers.filter((worker) =>
        worker !== plan.crash.worker && worker !== plan.interruption.worker
      )
      assert.deepStrictEqual(failing(history.filter(({ at }) => at <= crash.at)), [
        `${others.join(", ")} led ${plan.terms} times each and finished`,
        `${plan.crash.worker} was killed while it led, and somebody took over`
      ])
    }))

  it.effect("detects that the interrupted worker was leading", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal()
      const { worker } = plan.interruption
      const interrupted = history.findIndex(({ _tag }) => _tag === "Interrupted")
      const led = history.toSpliced(interrupted, 0, {
        _tag: "Leading",
        worker,
        at: history[interrupted]!.at - 1,
        term: 3,
        token: 1
      })
      assert.include(failing(led), `${worker} was interrupted while it waited`)
    }))

  it.effect("detects a failed worker", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal()
      const failed = history.map((event): Event =>
        event._tag === "Finished" && event.worker === "ada"
          ? { _tag: "Failed", worker: "ada", at: event.at, problem: "it ended" }
          : event
      )
      assert.lengthOf(failing(failed), 2)
    }))
})
