import { Contender, type FencingToken, Mutex, MutexName, type OwnerEvent, type SimbaError } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import {
  Clock,
  Context,
  DateTime,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Option,
  Scope,
  Stream
} from "effect"
import { TestClock } from "effect/testing"
import { HeldLease } from "../../src/internal/mutex/heldLease.ts"
import { settingsOf } from "../../src/internal/mutex/leaseOptions.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import * as Fleet from "../support/fleet.ts"
import { another, start, TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

/** Runs every fiber that can run, without moving the clock. */
const settle = TestClock.adjust(0)

const recording = Effect.fnUntraced(function*(contention: Contender.Contender) {
  const observed: Array<OwnerEvent.OwnerEvent["_tag"]> = []
  yield* start(Stream.runForEach(contention.events, (event) => Effect.sync(() => observed.push(event._tag))))
  yield* settle
  return observed
})

/** A contender that counts its leaderships, and records whether its work runs. */
const makeWork = () => {
  const work = { gains: 0, running: 0 }
  const effect = Effect.acquireUseRelease(
    Effect.sync(() => {
      work.gains++
      work.running++
    }),
    () => Effect.never,
    () => Effect.sync(() => work.running--)
  )
  return { work, effect }
}

describe("a contender over time", () => {
  it.effect("can lead repeatedly, and runs its work each time", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      const both = yield* Effect.forEach(["a", "b"], (name) =>
        Effect.gen(function*() {
          const node = yield* fleet.node(name)
          const jobs = yield* node.here(Mutex.contend("jobs"))
          const { effect, work } = makeWork()
          yield* node.start(jobs.whileLeader(effect))
          yield* settle
          return { jobs, work }
        }))
      const [a, b] = [both[0]!, both[1]!]
      for (let i = 0; i < 20; i++) {
        assert.deepStrictEqual([a.work.running, b.work.running], [1, 0])
        yield* a.jobs.stepDown
        yield* settle
        assert.deepStrictEqual([a.work.running, b.work.running], [0, 1])
        yield* b.jobs.stepDown
        yield* settle
      }
      assert.deepStrictEqual([a.work.gains, b.work.gains], [21, 20])
    }))

  it.effect("shows its state before, during and after each leadership", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      const node = yield* fleet.node("a")
      const states: Array<Contender.State> = []
      const jobs = yield* node.here(Mutex.contend("jobs"))
      yield* start(Stream.runForEach(jobs.changes, (s) => Effect.sync(() => states.push(s))))
      yield* TestClock.adjust("1 second")
      const lease = yield* Effect.fromOption(yield* jobs.lease)
      const held = { before: undefined, after: lease.id, isInTtl: true, isInTransition: false }
      assert.deepStrictEqual(yield* jobs.state, { _tag: "Leading", lease, ...held })

      fleet.faults.guard = "fail"
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(yield* jobs.state, {
        _tag: "Leading",
        lease,
        ...held,
        isInTtl: false,
        isInTransition: true
      })
      fleet.faults.acquire = "fail"
      yield* TestClock.adjust("3500 millis")
      const expired = yield* jobs.state
      assert.deepStrictEqual([expired._tag, Option.isNone(yield* jobs.lease)], ["Vacant", true])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* jobs.state, {
        _tag: "Vacant",
        before: lease.id,
        after: undefined,
        isInTtl: false,
        isInTransition: false
      })

      fleet.faults.guard = "work"
      fleet.faults.acquire = "work"
      yield* TestClock.adjust("15 seconds")
      const repeated = yield* Effect.fromOption(yield* jobs.lease)
      assert.isAbove(repeated.token, lease.token)
      assert.deepStrictEqual(yield* jobs.state, { _tag: "Leading", lease: repeated, ...held, after: repeated.id })
      const transitions = states.map(({ isInTransition, isInTtl }) => [isInTtl, isInTransition])
      assert.isTrue(transitions.every(([ttl, transition]) => !(ttl && transition)))
    }))

  it.effect("reports another owner and how much time is left on that owner's lease", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const mutex = MutexName.MutexName.make("jobs")
      const id = "foreign" as MutexName.LeaseId
      const period = { lease: Duration.seconds(16), confirm: Duration.millis(1500) }
      yield* MutexStore.acquire(store, { mutex, id, mode: "try", ...period })
      const jobs = yield* Mutex.contend("jobs")
      const observed = yield* recording(jobs)
      const foreign: Contender.State = {
        _tag: "Following",
        before: undefined,
        after: id,
        leader: id,
        until: DateTime.makeUnsafe(16_000),
        isInTtl: true,
        isInTransition: false
      }
      assert.deepStrictEqual(yield* jobs.state, foreign)
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(yield* jobs.state, { ...foreign, isInTtl: false, isInTransition: true })
      yield* TestClock.adjust("6 seconds")
      const own = yield* jobs.state
      assert.deepStrictEqual([own.before, own._tag], [id, "Leading"])
      assert.includeMembers(observed, ["Expired", "Acquired"])
    }).pipe(Effect.provide(TestLive)), { tags: ["S16"] })

  it.effect("times another owner's lease by the layer's clock, even if the contender was created under a different clock", () =>
    Effect.gen(function*() {
      yield* Effect.provide(Mutex.acquire("jobs"), yield* another("them"))
      const jobs = yield* TestClock.withLive(Mutex.contend("jobs"))
      yield* settle
      const state = yield* jobs.state
      assert.deepInclude(state, { _tag: "Following", until: DateTime.makeUnsafe(16_000), isInTtl: true })
    }).pipe(Effect.provide(TestLive)))

  it.effect("publishes changes, and notifies slow readers when they have missed some", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      yield* settle
      const observed = yield* recording(jobs)
      const gate = yield* Deferred.make<void>()
      const slow: Array<string> = []
      yield* start(Stream.runForEach(jobs.events, (event) =>
        Effect.andThen(
          Deferred.await(gate),
          Effect.sync(() => slow.push(event._tag))
        )))
      yield* settle
      for (let i = 0; i < 200; i++) {
        yield* jobs.stop
        yield* TestClock.adjust("2 seconds")
        yield* jobs.start
        yield* TestClock.adjust("2 seconds")
      }
      assert.deepStrictEqual(observed.slice(0, 5), ["Acquired", "Released", "Acquired", "Released", "Acquired"])
      assert.strictEqual(observed.length, 401)
      yield* Deferred.succeed(gate, undefined)
      yield* TestClock.adjust("2 seconds")
      assert.isBelow(slow.length, 200)
      assert.include(slow, "Gap")
      assert.strictEqual(slow.at(-1), "Acquired")
    }).pipe(Effect.provide(TestLive)))

  it.effect("can be stopped and started repeatedly and in any order", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const { effect, work } = makeWork()
      yield* start(jobs.whileLeader(effect))
      yield* settle
      assert.strictEqual(work.running, 1)
      yield* jobs.stop
      yield* jobs.stop
      assert.strictEqual(work.running, 0)
      assert.strictEqual((yield* Mutex.owner("jobs"))._tag, "Free")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Mutex.owner("jobs"))._tag, "Free")
      yield* jobs.start
      yield* jobs.start
      yield* settle
      assert.strictEqual(work.running, 1)
    }).pipe(Effect.provide(TestLive)), { tags: ["B60"] })

  it.effect("work may step down, even in its first step", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const tokens: Array<number> = []
      yield* start(
        jobs.whileLeader((lease) => Effect.suspend(() => tokens.push(lease.token) < 4 ? jobs.stepDown : Effect.never))
      )
      yield* Effect.repeat(settle, { times: 9 })
      assert.strictEqual(tokens.length, 4)
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
      yield* start(jobs.whileLeader(Effect.andThen(Effect.sleep("1 second"), jobs.stop)))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* Mutex.owner("jobs"))._tag, "Free")
      yield* jobs.start
      yield* settle
      assert.strictEqual(tokens.length, 5)
    }).pipe(Effect.provide(TestLive)))

  it.effect("work is interrupted if its lease expires in its first step", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const lease = yield* Mutex.acquire("m")
        const work = Effect.suspend(() => {
          stall.millis = 20_000
          return Effect.andThen(lease.isHeld, Effect.never)
        })
        const fiber = yield* start(Effect.flip(lease.protect(work)))
        yield* settle
        assert.strictEqual((yield* Fiber.join(fiber)).reason._tag, "Expired")
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect(
    "a lost lease stays lost while its work is still ending",
    () =>
      Effect.gen(function*() {
        const holding = new HeldLease(
          MutexName.MutexName.make("m"),
          "1-aaaaaaaaaaaa:us" as MutexName.LeaseId,
          1 as FencingToken.FencingToken,
          settingsOf({ ttl: Duration.seconds(10), transition: Duration.seconds(6), localTurn: Duration.zero }),
          { monotonic: 0, wall: 0 }
        )
        const work = yield* start(Effect.uninterruptible(Effect.sleep("1 minute")))
        holding.work.start()
        holding.work.add(work, false)
        holding.lose("TakenOver")
        const ended = yield* start(holding.endWork() ?? Effect.die("the work has started"))
        assert.isFalse(holding.isOpen())
        assert.isUndefined(ended.pollUnsafe())
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(ended)
      }),
    { tags: ["S13"] }
  )

  it.effect("survives outages, with never more than one leader", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      let running = 0
      let most = 0
      let gains = 0
      for (const name of ["a", "b", "c"]) {
        const node = yield* fleet.node(name)
        const jobs = yield* node.here(Mutex.contend("jobs"))
        yield* node.start(jobs.whileLeader(Effect.acquireUseRelease(
          Effect.sync(() => {
            gains++
            most = Math.max(most, ++running)
          }),
          () => Effect.never,
          () => Effect.sync(() => running--)
        )))
      }
      yield* TestClock.adjust("1 second")
      for (const mode of ["fail", "hang"] as const) {
        Object.assign(fleet.faults, { acquire: mode, guard: mode, release: mode, inspect: "fail" })
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual(running, 0)
        Object.assign(fleet.faults, { acquire: "work", guard: "work", release: "work", inspect: "work" })
        yield* TestClock.adjust("1 minute")
        // Hanging requests never get a reply. Waiters poll again after their own timeouts.
        assert.isAtMost(running, 1)
      }
      assert.isAtLeast(gains, 2)
      assert.strictEqual(most, 1)
    }))

  it.effect("with onError set to fail, failing work ends whileLeader but not the leadership", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const fiber = yield* start(jobs.whileLeader(Effect.fail("no"), { onError: "fail" }))
      yield* settle
      assert.strictEqual(yield* Effect.flip(Fiber.join(fiber)), "no")
      assert.isTrue((yield* jobs.state)._tag === "Leading")
      const finished = yield* start(jobs.whileLeader(Effect.void))
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(finished.pollUnsafe())
      assert.isTrue((yield* jobs.state)._tag === "Leading")
    }).pipe(Effect.provide(TestLive)))

  it.effect("readers receive errors, and the reads are retried", () => {
    let broken = false
    const store = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({
        ...store,
        inspect: (mutex, limit) =>
          Effect.suspend(() =>
            broken
              ? Effect.fail(
                { ...FaultyStore.outage, isRetryable: false, _tag: "BackendError" } as SimbaError.BackendError
              )
              : store.inspect(mutex, limit)
          )
      }))
    ).pipe(Layer.provide(FaultyStore.layer))
    return Effect.gen(function*() {
      const holding = yield* Scope.make()
      yield* Scope.provide(Effect.provide(Mutex.acquire("jobs"), yield* another("them")), holding)
      const jobs = yield* Mutex.contend("jobs")
      yield* settle
      const reader = yield* start(Effect.flip(Stream.runDrain(jobs.events)))
      broken = true
      yield* TestClock.adjust("12 seconds")
      assert.strictEqual((yield* Fiber.join(reader))._tag, "BackendError")
      broken = false
      yield* TestClock.adjust("20 seconds")
      const observed = yield* recording(jobs)
      yield* jobs.stop
      yield* Scope.close(holding, Exit.void)
      // The next poll is due when the owner should have renewed
      yield* TestClock.adjust("12 seconds")
      assert.deepStrictEqual(observed, ["Released"])
      assert.isUndefined((yield* jobs.state).after)
    }).pipe(Effect.provide(
      Mutex.layer().pipe(Layer.provideMerge(store), Layer.provideMerge(Logger.layer([])))
    ))
  })

  it.effect("refuses invalid names and options", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(Mutex.contend("")))._tag, "InvalidName")
      assert.strictEqual((yield* Effect.flip(Mutex.contend("m", { pollInterval: 0 })))._tag, "InvalidConfig")
      assert.strictEqual((yield* Effect.flip(Mutex.contend("m", { ttl: "-1 second" })))._tag, "InvalidConfig")
      const { message } = yield* Effect.flip(Mutex.contend("m", { logLevel: "info" as never }))
      assert.include(message, "\"info\" is none of All, Fatal, Error, Warn, Info,")
    }).pipe(Effect.provide(TestLive)))
})

describe("contenders as classes", () => {
  class Jobs extends Contender.Service<Jobs>()("test/Jobs") {}
  class Mails extends Contender.Service<Mails>()("test/Mails") {}
  const live = Layer.merge(Jobs.layer("jobs", { ttl: "5 seconds" }), Mails.layer("mails"))
  class Leads
    extends Context.Service<Leads, { readonly owners: Effect.Effect<ReadonlyArray<boolean>> }>()("test/Leads")
  {
    static readonly layer = Layer.effect(
      Leads,
      Effect.gen(function*() {
        const contenders = [yield* Jobs, yield* Mails]
        return { owners: Effect.forEach(contenders, (c) => Effect.map(c.state, ({ _tag }) => _tag === "Leading")) }
      })
    )
  }

  it.effect("several contenders share one Mutex service, and release their mutexes when the application closes", () =>
    Effect.gen(function*() {
      yield* Effect.gen(function*() {
        yield* settle
        assert.deepStrictEqual(yield* (yield* Leads).owners, [true, true])
        const [jobs, mails] = [yield* Jobs, yield* Mails]
        assert.deepStrictEqual([jobs.mutex, mails.mutex] as ReadonlyArray<string>, ["jobs", "mails"])
        yield* jobs.stop
        yield* settle
        assert.deepStrictEqual(yield* (yield* Leads).owners, [false, true])
        const faults = yield* FaultyStore.Faults
        assert.isAbove(faults.calls.length, 0)
      }).pipe(Effect.provide(Leads.layer.pipe(Layer.provideMerge(live))))
      assert.strictEqual((yield* Mutex.owner("mails"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)))
})

it.effect("a contender that notices a loss while publishing a state does not publish an older state afterwards", () =>
  Effect.gen(function*() {
    const { clock, stall } = yield* stalling
    yield* Effect.gen(function*() {
      const contender = yield* Mutex.contend("m")
      const noted: Array<string> = []
      yield* start(
        Stream.runForEach(contender.changes, ({ _tag, isInTtl }) => Effect.sync(() => noted.push(`${_tag} ${isInTtl}`)))
      )
      yield* settle
      stall.millis = 20_000
      yield* contender.start
      yield* settle
      assert.notInclude(noted, "Following true", String(noted))
    }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
  }))

it.effect("a contender that notices a loss while its state is read returns the state after the loss", () =>
  Effect.gen(function*() {
    const { clock, stall } = yield* stalling
    yield* Effect.gen(function*() {
      const contender = yield* Mutex.contend("m")
      yield* settle
      assert.strictEqual((yield* contender.state)._tag, "Leading")
      stall.millis = 20_000
      const state = yield* contender.state
      assert.isFalse(state.isInTtl || state.isInTransition, JSON.stringify(state))
    }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
  }))
