/** Handles and errors print a few fields and no internals. */
import { Contender, Mutex, SimbaError } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { inspect } from "node:util"
import { MemoryLive, TestLive } from "../support/setup.ts"
import * as fleet from "../support/streamFleet.ts"

/** Asserts that JSON, `console.log` and an inspection of unlimited depth show only these fields. */
const assertShows = (handle: object, fields: Record<string, unknown>) => {
  assert.deepStrictEqual(JSON.parse(JSON.stringify(handle)), fields)
  assert.strictEqual(inspect(handle), inspect(fields))
  assert.strictEqual(inspect(handle, { depth: null }), inspect(fields, { depth: null }))
}

describe("handles", () => {
  it.effect("a lease shows its mutex, id, token and remaining time", () =>
    Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m")
      const { id, mutex, token } = lease
      assertShows(lease, { mutex, id, token, timeLeft: "15s 200ms" })
      yield* TestClock.adjust("3 seconds")
      assertShows(lease, { mutex, id, token, timeLeft: "12s 200ms" })
      assert.include(String(lease), "\"mutex\":\"m\"")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a released lease does not show a remaining time", () =>
    Effect.gen(function*() {
      const { json, lease } = yield* Effect.scoped(
        Effect.map(Mutex.acquire("m"), (lease) => ({ lease, json: JSON.stringify(lease) }))
      )
      assert.include(json, "\"timeLeft\":\"15s 200ms\"")
      const { id, mutex, token } = lease
      assertShows(lease, { mutex, id, token, timeLeft: "0" })
    }).pipe(Effect.provide(MemoryLive)))

  it.effect("a group shows its leases", () =>
    Effect.gen(function*() {
      const group = yield* Mutex.acquireAll(["a", "b"])
      assertShows(group, {
        leases: group.leases.map(({ id, mutex, token }) => ({ mutex, id, token, timeLeft: "15s 200ms" }))
      })
    }).pipe(Effect.scoped, Effect.provide(MemoryLive)))

  it.effect("a contender shows its mutex, and also its lease while it leads", () => {
    class Jobs extends Contender.Service<Jobs>()("test/Jobs") {}
    return Effect.gen(function*() {
      const jobs = yield* Jobs
      yield* jobs.stop
      assertShows(jobs, { mutex: "jobs" })
      yield* jobs.start
      yield* TestClock.adjust(1)
      const lease = yield* jobs.lease
      assert.strictEqual(lease._tag, "Some")
      if (lease._tag === "Some") {
        const { id, token } = lease.value
        assertShows(jobs, { mutex: "jobs", id, token, timeLeft: "15s 199ms" })
        assertShows(lease.value, { mutex: "jobs", id, token, timeLeft: "15s 199ms" })
      }
    }).pipe(Effect.provide(Layer.provide(Jobs.layer("jobs"), TestLive)))
  })

  it.effect("the lease of a data stream shows its stream, entry, token and remaining time", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a")
      yield* a.start(a.client.run(Effect.never))
      yield* a.client.announceAll([{ stream: "s1", info: { secret: "x" } }])
      yield* TestClock.adjust("10 millis")
      const [lease] = yield* a.client.owned
      const { entry, stream, token } = lease!
      assert.strictEqual(stream, "s1")
      const shown = lease!.toJSON() as { readonly timeLeft: string }
      assert.match(shown.timeLeft, /^1s \d+ms$/)
      assertShows(lease!, { stream, entry, token, timeLeft: shown.timeLeft })
    })))

  it.effect("all handles can be piped", () =>
    Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m")
      assert.strictEqual(lease.pipe(({ token }) => token), lease.token)
      const group = yield* Mutex.acquireAll(["a", "b"])
      assert.strictEqual(group.pipe(({ leases }) => leases.length), 2)
      const contender = yield* Mutex.contend("jobs")
      assert.strictEqual(contender.pipe(({ mutex }) => mutex), "jobs")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("errors", () => {
  it.effect("print their class and their message or fields", () =>
    Effect.sync(() => {
      const error = new SimbaError.InvalidName({ kind: "mutex", value: " ", problem: "it is blank" })
      assert.strictEqual(String(error), "@effect-simba/core/InvalidName: \" \" cannot be a mutex name: it is blank.")
      assert.strictEqual(
        inspect(error),
        inspect({ _tag: "InvalidName", kind: "mutex", value: " ", problem: "it is blank" })
      )
    }))
})
