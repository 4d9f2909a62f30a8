/** Tests a simulation in which the caller advances time and injects faults. */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { Checker, Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { Redis } from "effect/persistence/Redis"

const lock: Simulation.LockModel = { resources: ["a"], ownerKey: (resource) => `lock:${resource}` }

/** Increments a counter on the server every 100 ms, and records how each command ends. */
const counting = (client: Simulation.Client) =>
  Redis.use((redis) => redis.send("INCR", client.name)).pipe(
    Effect.match({
      onSuccess: () => client.note("counted"),
      onFailure: ({ cause }) => client.note("failed", { error: String(cause) })
    }),
    Effect.delay("100 millis"),
    Effect.forever
  )

const latency = { requestDelay: [1, 1], replyDelay: [1, 1] } as const

const begin = (options?: Partial<Simulation.Options<never>>) =>
  Simulation.begin({
    seed: 1,
    clients: 2,
    program: counting,
    lock,
    checkers: [],
    network: latency,
    duration: Infinity,
    undoDepth: 4,
    ...options
  })

const count = (live: Simulation.Live, client: string) => Number(live.read(client)[0] ?? 0)

const faults = (live: Simulation.Live) =>
  live.events.flatMap((event) => event._tag === "Fault" ? [`${event.target} ${event.fault}`] : [])

describe("Simulation.begin", () => {
  it.effect("advancing in steps of any length gives the same history as a run", () =>
    Effect.gen(function*() {
      const options: Simulation.Options<never> = {
        seed: 7,
        program: counting,
        lock,
        checkers: [Checker.rules.oneOwner],
        faults: { kill: { every: 2000, lasts: [100, 500] }, loseReply: 0.1, pause: { every: 2000, lasts: [100, 900] } },
        enabled: ["kill", "loseReply", "pause"],
        duration: "8 seconds",
        closing: "1 second"
      }
      const whole = yield* Simulation.run(options)
      const live = yield* Simulation.begin(options)
      for (let step = 0.7; !live.isOver(); step = 1 + (step * 7) % 300) live.advance(live.now() + step)
      assert.deepStrictEqual(
        Simulation.report(live.result(), { format: "trace" }),
        Simulation.report(whole, { format: "trace" })
      )
    }))

  it.effect("time can be advanced to an instant, but never goes back", () =>
    Effect.gen(function*() {
      const live = yield* begin()
      live.advance(950)
      assert.strictEqual(live.now(), 950)
      live.advance(10)
      assert.strictEqual(live.now(), 950)
      assert.strictEqual(count(live, "c1"), 9)
    }))

  it.effect("a violation ends the simulation", () =>
    Effect.gen(function*() {
      const live = yield* begin({ program: () => Effect.die("a mistake") })
      live.advance(10_000)
      assert.isTrue(live.isOver())
      assert.strictEqual(live.result().violations[0]?.checker, "program")
      assert.isBelow(live.now(), 1000)
    }))

  it.effect("a killed process does nothing until it is restarted as the next generation", () =>
    Effect.gen(function*() {
      const live = yield* begin()
      live.advance(450)
      live.kill("c1")
      live.advance(5000)
      assert.strictEqual(count(live, "c1"), 4)
      live.restart("c1")
      live.advance(6000)
      assert.isAbove(count(live, "c1"), 10)
      assert.deepInclude(live.processes()[0], { name: "c1", generation: 2, state: "running" })
      assert.deepStrictEqual(faults(live), ["c1 kill", "c1 start"])
    }))

  it.effect("a process can be paused again after it has been paused and killed", () =>
    Effect.gen(function*() {
      const live = yield* begin()
      live.pause("c1")
      live.kill("c1")
      live.restart("c1")
      live.pause("c1")
      live.advance(1000)
      assert.strictEqual(count(live, "c1"), 0)
      live.resume("c1")
      live.advance(2000)
      assert.isAbove(count(live, "c1"), 5)
    }))

  it.effect("a cut link passes nothing until it is healed, even after several cuts", () =>
    Effect.gen(function*() {
      const live = yield* begin()
      live.cut("c1")
      live.cut("c1")
      live.advance(1000)
      assert.strictEqual(count(live, "c1"), 0)
      assert.isTrue(live.processes()[0]!.isCut)
      live.heal("c1")
      live.advance(4000)
      assert.isAbove(count(live, "c1"), 5)
      assert.isAbove(count(live, "c2"), 30)
    }))

  it.effect("messages are listed as in flight as soon as they are sent", () =>
    Effect.gen(function*() {
      const live = yield* begin({ clients: 1 })
      live.setLink("c1", { requestDelay: [50, 50] })
      live.advance(1000)
      const requests = live.parcels.filter(({ args, kind }) => kind === "request" && args[0] === "INCR")
      const first = requests[0]!
      assert.strictEqual(first.arrivedAt! - first.sentAt, 50)
      const reply = live.parcels.find(({ kind, sentAt }) => kind === "reply" && sentAt === first.arrivedAt)!
      assert.strictEqual(reply.reply, 1)
      live.cut("c1")
      live.advance(1160)
      assert.isUndefined(live.parcels.filter(({ kind }) => kind === "request").at(-1)!.arrivedAt)
    }))

  it.effect("processes can be added", () =>
    Effect.gen(function*() {
      const live = yield* begin()
      assert.strictEqual(live.add(), "c3")
      live.advance(1050)
      assert.isAbove(count(live, "c3"), 5)
      assert.isDefined(live.parcels.find(({ client }) => client === "c3"))
    }))

  it.effect("a single process's clock can be stepped", () =>
    Effect.gen(function*() {
      const telling = (client: Simulation.Client) =>
        Effect.clockWith((clock) => clock.currentTimeMillis).pipe(
          Effect.map((now) => client.note("now", { now })),
          Effect.delay("100 millis"),
          Effect.forever
        )
      const live = yield* begin({ program: telling })
      live.advance(1000)
      live.stepClock("c1", -5000)
      live.advance(1150)
      const latest = (name: string) =>
        live.events.flatMap((event) =>
          event._tag === "Note" && event.client === name ? [Number(event.fields["now"])] : []
        ).at(-1)!
      assert.isBelow(Math.abs(latest("c2") - latest("c1") - 5000), 10)
      assert.strictEqual(live.processes()[0]!.clockStep, -5000)
    }))

  it.effect("the server can fail over, restart and refuse commands", () =>
    Effect.gen(function*() {
      const live = yield* begin({ clients: 1 })
      live.advance(1050)
      live.failover({ loseLastWrites: 4 })
      assert.strictEqual(count(live, "c1"), 6)
      live.restartServer({ keepData: false })
      assert.strictEqual(count(live, "c1"), 0)
      live.advance(2000)
      live.setErrorState("LOADING")
      const refusedFrom = count(live, "c1")
      live.advance(3000)
      assert.strictEqual(count(live, "c1"), refusedFrom)
      live.setErrorState(undefined)
      live.advance(4000)
      assert.isAbove(count(live, "c1"), refusedFrom)
    }))

  it.effect("subscribers are notified when the server drops their subscriptions", () =>
    Effect.gen(function*() {
      const listening = (client: Simulation.Client) =>
        Effect.gen(function*() {
          const subscriber = yield* Subscriber
          const notices = yield* subscriber.subscribe("events")
          return yield* Effect.forever(Effect.map(Queue.take(notices), ({ _tag }) => client.note(_tag)))
        })
      const live = yield* begin({ clients: 1, program: listening as unknown as typeof counting })
      live.advance(1000)
      const before = live.events.filter((event) => event._tag === "Note").length
      live.dropSubscribers()
      live.advance(2000)
      const notes = live.events.filter((event) => event._tag === "Note").slice(before)
      assert.deepStrictEqual(notes.map(({ kind }) => kind), ["Gap"])
      assert.deepStrictEqual(faults(live), ["server drop subscribers"])
    }))
})
