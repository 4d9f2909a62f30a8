/** What a contender counts and logs, and which leader it reports once its own lease has ended. */
import { Mutex, MutexMetrics } from "@effect-simba/core"
import { type LeaseId, MutexName } from "@effect-simba/core/MutexName"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Layer, Logger, Metric, Option, References, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Faults, silentStore } from "../support/faultyStore.ts"
import * as Fleet from "../support/fleet.ts"
import { MemoryLive, start, TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })

const counts = Effect.gen(function*() {
  const { ended, gained } = MutexMetrics.leadership
  const all = yield* Effect.forEach([gained, ended.released, ended.lost], (counter) => Metric.value(counter))
  return all.map(({ count }) => count)
})

describe("a contender", () => {
  it.effect("counts each start, release and loss of leadership once", () =>
    Effect.suspend(() =>
      Effect.gen(function*() {
        const jobs = yield* Mutex.contend("jobs")
        yield* settle
        assert.deepStrictEqual(yield* counts, [1, 0, 0])
        yield* jobs.stop
        yield* settle
        assert.deepStrictEqual(yield* counts, [1, 1, 0])
        yield* jobs.start
        yield* settle
        assert.deepStrictEqual(yield* counts, [2, 1, 0])
        const faults = yield* Faults
        faults.guard = "fail"
        faults.acquire = "fail"
        yield* TestClock.adjust("20 seconds")
        assert.deepStrictEqual(yield* counts, [2, 1, 1])
      }).pipe(Effect.provide(Layer.fresh(TestLive)), Effect.provideService(Metric.MetricRegistry, new Map()))
    ))

  it.effect("logs only the start and end of its leadership", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String([message].flat()[0])))
      const fleet = yield* Fleet.make
      const nodes = yield* Effect.forEach(["a", "b"], (name) =>
        Effect.gen(function*() {
          const node = yield* fleet.node(name, { logger })
          const contender = yield* node.here(Mutex.contend("jobs"))
          yield* settle
          return { ...node, contender }
        }))
      assert.deepStrictEqual(lines.splice(0), ["Leadership begins"])
      // A leaving node polls occasionally and is refused
      yield* nodes[1]!.contender.leave
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(lines.splice(0), [])
      yield* nodes[0]!.contender.stop
      yield* TestClock.adjust("1100 millis")
      assert.deepStrictEqual(lines, ["Leadership ends", "Leadership begins"])
      assert.isTrue(Option.isSome(yield* nodes[1]!.contender.lease))
    }))

  it.effect("logs the mutex, the lease and the token where its leadership begins and ends", () =>
    Effect.gen(function*() {
      const noted: Array<unknown> = []
      const logger = Logger.make<unknown, void>(({ fiber }) =>
        void noted.push(fiber.getRef(References.CurrentLogAnnotations))
      )
      const node = yield* (yield* Fleet.make).node("a", { logger })
      const contender = yield* node.here(Mutex.contend("jobs"))
      yield* settle
      const { id, token } = yield* Effect.flatMap(contender.lease, Effect.fromOption)
      yield* contender.stop
      const expected = { mutex: "jobs", lease: id, token }
      assert.deepStrictEqual(noted, [expected, expected])
    }))

  it.effect("immediately reports that it leads, even if it receives no messages", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const noted: Array<string> = []
      yield* start(Stream.runForEach(jobs.changes, ({ _tag }) => Effect.sync(() => noted.push(_tag))))
      yield* settle
      assert.deepStrictEqual(noted, ["Vacant", "Leading"])
    }).pipe(Effect.provide(Mutex.layer().pipe(Layer.provide(silentStore)))))

  it.effect("immediately notices that nobody leads when its process resumes after the end of its lease", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const jobs = yield* Mutex.contend("jobs")
        yield* settle
        const { id } = yield* Effect.fromOption(yield* jobs.lease)
        stall.millis = 20_000
        assert.deepStrictEqual<unknown>(yield* jobs.state, {
          ...{ _tag: "Vacant", before: id, after: undefined },
          ...{ isInTtl: false, isInTransition: false }
        })
      }).pipe(Effect.provide(MemoryLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("pauses as after a first failure if its work fails after a minute of leadership", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      for (const [lasts, pause] of [[59_999, 200], [60_000, 100], [60_001, 100]] as const) {
        const at: Array<number> = []
        yield* Effect.scoped(Effect.gen(function*() {
          const jobs = yield* Mutex.contend(`jobs ${lasts}`)
          yield* start(jobs.whileLeader(Effect.suspend(() => {
            at.push(clock.currentTimeMillisUnsafe())
            return at.length === 2 ? Effect.andThen(Effect.sleep(lasts), Effect.fail("no")) : Effect.fail("no")
          })))
          yield* TestClock.adjust("2 minutes")
        }))
        assert.strictEqual(at[2]! - at[1]!, lasts + pause, String(lasts))
      }
    }).pipe(Effect.provide(TestLive)))

  it.effect("polls every second if nobody or a Simba contender leads, otherwise a second after the ttl", () =>
    Effect.gen(function*() {
      const mutex = MutexName.make("jobs")
      for (const [owner, polls] of [[undefined, 12], ["1:1@simba", 12], ["1-bbbbbbbbbbbb:them", 1]] as const) {
        let count = 0
        const counting = Layer.effect(
          MutexStore.MutexStore,
          Effect.map(MutexStore.MutexStore, (store) => ({
            ...store,
            inspect: (mutex, limit) =>
              Effect.suspend(() => {
                count++
                return store.inspect(mutex, limit)
              })
          }))
        ).pipe(Layer.provide(Layer.fresh(MutexStore.layerMemory)))
        yield* Effect.gen(function*() {
          const store = yield* MutexStore.MutexStore
          const times = { lease: Duration.seconds(16), confirm: Duration.seconds(1) }
          if (owner !== undefined) {
            yield* MutexStore.acquire(store, { mutex, id: owner as LeaseId, mode: "try", ...times })
          }
          const jobs = yield* Mutex.contend("jobs")
          if (owner === undefined) yield* jobs.stop
          yield* settle
          count = 0
          yield* TestClock.adjust("10999 millis")
          const before = count
          yield* TestClock.adjust("1 second")
          assert.deepStrictEqual([before, count], polls === 1 ? [0, 1] : [polls - 2, polls - 1], String(owner))
        }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Mutex.layer()).pipe(Layer.provideMerge(counting))))
        yield* TestClock.adjust(1)
      }
    }))

  it.effect("checks after a stop whether its release was executed, unless stop was called by its own work", () => {
    let asked = 0
    const counting = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({
        ...store,
        owner: (mutex) =>
          Effect.suspend(() => {
            asked++
            return store.owner(mutex)
          })
      }))
    ).pipe(Layer.provide(MutexStore.layerMemory))
    return Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      yield* settle
      yield* jobs.stop
      assert.strictEqual(asked, 1)
      yield* jobs.start
      yield* start(jobs.whileLeader(jobs.stop))
      yield* settle
      assert.strictEqual((yield* jobs.state)._tag, "Stopped")
      assert.strictEqual(asked, 1)
    }).pipe(Effect.scoped, Effect.provide(Mutex.layer().pipe(Layer.provide(counting))))
  })
})
