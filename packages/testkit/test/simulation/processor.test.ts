/** Tests how simulated processes execute: what takes time, in what order things run, and busy loops. */
import { Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"

type Processor = NonNullable<Simulation.Faults["processor"]>

const run = (
  program: Simulation.Options<never>["program"],
  processor: Partial<Processor> = {},
  options?: Partial<Simulation.Options<never>>
) =>
  Simulation.run({
    seed: 1,
    clients: 1,
    program,
    lock: { resources: [], ownerKey: (resource) => resource },
    checkers: [],
    faults: { processor: { task: [0], stall: { chance: 0, by: [0, 0] }, yieldAfter: [2048], ...processor } },
    enabled: ["processor"],
    network: { requestDelay: [0, 0], replyDelay: [0, 0] },
    duration: "1 second",
    calm: "1 second",
    liveness: "1 second",
    ...options
  })

const notes = ({ events }: Simulation.Result) =>
  events.flatMap((event) =>
    event._tag === "Note" ? [`${event.client} ${event.kind} at ${Math.round(event.at * 1000) / 1000}`] : []
  )

const noted = (client: Simulation.Client, kind: string) => Effect.sync(() => client.note(kind))

describe("A processor", () => {
  it.effect("runs nothing else while a fiber computes, then everything that became due in the meantime", () =>
    Effect.gen(function*() {
      const result = yield* run((client) =>
        Effect.gen(function*() {
          const timer = yield* Effect.forkChild(Effect.andThen(Effect.sleep("10 millis"), noted(client, "timer")))
          yield* Effect.sleep("1 millis")
          yield* client.compute(50)
          client.note("computed")
          yield* Fiber.join(timer)
        })
      )
      assert.deepStrictEqual(notes(result), ["c1 computed at 51", "c1 timer at 51"])
    }))

  it.effect("does not delay other processes", () =>
    Effect.gen(function*() {
      const result = yield* run(
        (client) =>
          Effect.andThen(
            client.index === 0 ? client.compute(50) : Effect.sleep("10 millis"),
            noted(client, "done")
          ),
        {},
        { clients: 2 }
      )
      assert.deepStrictEqual(notes(result), ["c2 done at 10.1", "c1 done at 50"])
    }))

  it.effect("makes each task take time in the phase with faults", () =>
    Effect.gen(function*() {
      const result = yield* run((client) =>
        Effect.repeat(Effect.andThen(noted(client, "task"), Effect.yieldNow), { times: 3 }).pipe(
          Effect.andThen(Effect.sleep("1 second")),
          Effect.andThen(client.compute(50)),
          Effect.andThen(noted(client, "calm"))
        ), { task: [2] })
      assert.deepStrictEqual(notes(result), [
        "c1 task at 0",
        "c1 task at 2",
        "c1 task at 4",
        "c1 task at 6",
        "c1 calm at 1008"
      ])
    }))

  it.effect("handles timers before data, like Node", () =>
    Effect.gen(function*() {
      const result = yield* run((client) =>
        Effect.all([
          Effect.andThen(client.outside(5, () => 0), noted(client, "data")),
          Effect.andThen(Effect.sleep("20 millis"), noted(client, "timer")),
          client.compute(50)
        ], { concurrency: "unbounded", discard: true })
      )
      assert.deepStrictEqual(notes(result), ["c1 timer at 50", "c1 data at 50"])
    }))

  it.effect("runs fibers in random order in some processes, and in Effect's order in others", () =>
    Effect.gen(function*() {
      const orders = new Set<string>()
      for (let seed = 1; seed <= 20; seed++) {
        const program = (client: Simulation.Client) =>
          Effect.forEach([1, 2, 3, 4], (n) => Effect.andThen(Effect.yieldNow, noted(client, `${n}`)), {
            concurrency: "unbounded",
            discard: true
          })
        const result = yield* run(program, {}, { seed })
        orders.add(result.events.flatMap((event) => event._tag === "Note" ? [event.kind] : []).join(""))
      }
      assert.isTrue(orders.has("1234"))
      assert.isAbove(orders.size, 4)
    }))

  it.effect("ends a fiber that is interrupted before it starts, like Effect", () =>
    Effect.gen(function*() {
      const result = yield* run((client) =>
        Effect.forkChild(Effect.never).pipe(
          Effect.flatMap((fiber) => {
            fiber.interruptUnsafe()
            return Fiber.await(fiber)
          }),
          Effect.repeat({ times: 20 }),
          Effect.andThen(noted(client, "done"))
        ), { yieldAfter: [1] })
      assert.deepStrictEqual(notes(result), ["c1 done at 0"])
    }))

  it.effect("may switch between fibers after a check and before the action that depends on the check", () =>
    Effect.gen(function*() {
      const entered = (yieldAfter: number) =>
        Effect.map(
          Effect.forEach(Array.from({ length: 10 }, (_, index) => index), (seed) =>
            run(
              (client) => {
                let isFree = true
                const enter = Effect.sync(() => isFree).pipe(
                  Effect.flatMap((free) =>
                    free ? Effect.sync(() => (isFree = false, client.note("entered"))) : Effect.void
                  )
                )
                return Effect.all([enter, enter], { concurrency: "unbounded", discard: true })
              },
              { yieldAfter: [yieldAfter] },
              { seed }
            )),
          (results) => results.filter((result) => notes(result).length > 1).length
        )
      assert.strictEqual(yield* entered(2048), 0)
      assert.isAbove(yield* entered(2), 0)
    }))

  it.effect("finds a busy loop, whether or not its tasks take time", () =>
    Effect.gen(function*() {
      for (const task of [0, 0.001]) {
        const result = yield* run(() => Effect.forever(Effect.yieldNow), { task: [task] })
        assert.strictEqual(result.violations[0]?.checker, "program")
        assert.include(result.violations[0]?.message, "it has a busy loop")
      }
      const without = yield* run(() => Effect.forever(Effect.yieldNow), {}, { enabled: [] })
      assert.include(without.violations[0]?.message, "it has a busy loop")
    }))

  it.effect("runs nothing while its process is paused, and is deterministic for a given seed", () =>
    Effect.gen(function*() {
      const program = (client: Simulation.Client) =>
        Effect.andThen(client.compute([1, 20]), noted(client, "computed")).pipe(
          Effect.andThen(Effect.sleep("3 millis")),
          Effect.forever
        )
      const traces = new Set<string>()
      for (let i = 0; i < 5; i++) {
        const result = yield* run(program, Simulation.allFaults.processor, {
          clients: 3,
          faults: Simulation.allFaults,
          enabled: ["processor", "pause", "suspend", "kill"],
          duration: "20 seconds"
        })
        traces.add(Simulation.report(result, { format: "trace" }))
      }
      assert.strictEqual(traces.size, 1)
      let paused = false
      for (const line of [...traces][0]!.split("\n").filter((line) => line.includes(" c1"))) {
        if (line.includes("!! c1 pause") || line.includes("!! c1 suspend")) paused = true
        else if (line.includes("!! c1")) paused = false
        else if (line.includes("c1#")) assert.isFalse(paused, line)
      }
    }))
})
