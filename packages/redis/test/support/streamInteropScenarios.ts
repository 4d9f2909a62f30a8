/**
 * Scenarios in which effect-simba consumers and Go consumers share a service. `server/interop/streams.test.ts` runs
 * them on a real server, and `memory/streamInterop.test.ts` on the fake one. The titles are in those files.
 */
import type { StreamClient } from "@effect-simba/core/streams"
import type * as GoConsumer from "@effect-simba/testkit/streams/GoConsumer"
import { assert } from "@effect/vitest"
import { Clock, Effect, type Scope } from "effect"
import { until } from "./harness.ts"

export const service = "svc"
const input = `${service}-input`
const group = `${service}-group`

type Work = (stream: string) => Effect.Effect<unknown, unknown>

export interface Own {
  readonly client: StreamClient.StreamClient["Service"]
  /** Runs `work` on each owned data stream until the consumer is closed or killed. */
  readonly run: (work: Work) => Effect.Effect<void>
  readonly close: Effect.Effect<void>
  /** Permanently cuts the consumer off from the server. */
  readonly kill: Effect.Effect<void>
}

export interface Go extends Effect.Success<ReturnType<typeof GoConsumer.join>> {
  readonly kill: Effect.Effect<void>
}

/** What a scenario needs from its environment: commands to the server, and consumers of both kinds. */
export interface Stage {
  readonly send: (...args: ReadonlyArray<string>) => Effect.Effect<unknown, unknown>
  readonly own: (
    id: string,
    options?: Omit<StreamClient.Options, "service" | "processName">
  ) => Effect.Effect<Own, unknown, Scope.Scope>
  readonly go: (id: string, work?: Work) => Effect.Effect<Go, unknown, Scope.Scope>
}

export type Scenario = (stage: Stage) => Effect.Effect<void, unknown, Scope.Scope>

/** Sets the server's keyspace events. Default: what Go consumers set when they start. */
const events = (stage: Stage, flags = "KEx") => stage.send("CONFIG", "SET", "notify-keyspace-events", flags)

/** Announces a data stream like the Go client, without checking for an earlier announcement. */
const announceAsGo = (stage: Stage, stream: string) =>
  Effect.map(
    stage.send("XADD", input, "*", "lbs-input", JSON.stringify({ DataStreamName: stream, Info: { by: "stock" } })),
    String
  )

const pending = (stage: Stage) =>
  Effect.map(
    stage.send("XPENDING", input, group, "-", "+", "1000"),
    (rows) => (rows as ReadonlyArray<readonly [string, string, number, number]>).map(([entry, owner]) => [entry, owner])
  )

const ownedBy = (own: Own) =>
  Effect.map(own.client.owned, (leases) => leases.map(({ stream }) => stream as string).sort())

const owns = (own: Own, ...streams: ReadonlyArray<string>) =>
  Effect.map(ownedBy(own), (owned) => owned.join() === streams.join())

const goOwns = (go: Go, ...streams: ReadonlyArray<string>) =>
  Effect.map(go.owned, (owned) => owned.toSorted().join() === streams.join())

/** Gives a consumer enough time to start its blocking read, which the server does not report. */
const joined = Effect.sleep("300 millis")

const elapsed = <E, R>(effect: Effect.Effect<unknown, E, R>) =>
  Effect.gen(function*() {
    const from = yield* Clock.currentTimeMillis
    yield* effect
    return (yield* Clock.currentTimeMillis) - from
  })

const nothingLeft = Effect.fnUntraced(function*(stage: Stage) {
  assert.strictEqual(yield* stage.send("XLEN", input), 0)
  assert.deepStrictEqual(yield* pending(stage), [])
  assert.deepStrictEqual(yield* stage.send("KEYS", "*<MUTEX_KEY_SEP>*"), [])
  assert.deepStrictEqual(yield* stage.send("KEYS", "mutex:*"), [])
})

/**
 * Both libraries announce data streams, and both kinds of consumers process them, each exactly once. Nothing is left
 * behind.
 */
export const bothWays: Scenario = (stage) =>
  Effect.gen(function*() {
    yield* events(stage)
    const processed: Array<readonly [who: string, stream: string]> = []
    const work = (who: string): Work => (stream) =>
      Effect.andThen(Effect.sleep("50 millis"), Effect.sync(() => processed.push([who, stream])))
    const own = yield* stage.own("ours")
    yield* own.run(work("ours"))
    yield* joined
    yield* stage.go("stock", work("stock"))
    const expected: Array<string> = []
    for (let i = 0; i < 10; i++) {
      yield* own.client.announceAll([{ stream: `ours:${i}` }])
      yield* announceAsGo(stage, `stock:${i}`)
      expected.push(`ours:${i}`, `stock:${i}`)
      yield* Effect.sleep("20 millis")
    }
    yield* until("all are done", Effect.map(stage.send("XLEN", input), (length) => length === 0))
    assert.deepStrictEqual(processed.map(([, stream]) => stream).sort(), expected.sort())
    assert.strictEqual(new Set(processed.map(([who]) => who)).size, 2, JSON.stringify(processed))
    yield* until("the leases are gone", Effect.map(stage.send("KEYS", "mutex:*"), (keys) => String(keys) === ""))
    yield* nothingLeft(stage)
  })

/** Effect-simba consumers do not take what a live Go consumer owns. */
export const liveGo: Scenario = (stage) =>
  Effect.gen(function*() {
    yield* events(stage)
    const go = yield* stage.go("stock")
    yield* joined
    const entry = yield* announceAsGo(stage, "held")
    yield* until("the Go consumer owns it", goOwns(go, "held"))
    const started: Array<string> = []
    const own = yield* stage.own("ours", { sweepInterval: "500 millis" })
    yield* own.run((stream) => Effect.andThen(Effect.sync(() => started.push(stream)), Effect.never))
    yield* Effect.sleep("6 seconds")
    assert.deepStrictEqual(started, [])
    assert.isTrue(yield* goOwns(go, "held"))
    assert.strictEqual(yield* stage.send("GET", `held<MUTEX_KEY_SEP>${entry}`), "redis-consumer-stock")
  })

/**
 * Closes an effect-simba consumer. Returns how long it takes a Go consumer to own its data streams, in milliseconds.
 */
export const handBack = (stage: Stage) =>
  Effect.gen(function*() {
    yield* events(stage)
    const own = yield* stage.own("ours")
    yield* own.run(() => Effect.never)
    yield* joined
    yield* own.client.announceAll([{ stream: "a" }, { stream: "b" }])
    yield* until("effect-simba owns them", owns(own, "a", "b"))
    const go = yield* stage.go("stock")
    yield* Effect.sleep("3 seconds")
    assert.deepStrictEqual(yield* go.owned, [])
    yield* own.close
    const millis = yield* elapsed(
      Effect.gen(function*() {
        while (!(yield* goOwns(go, "a", "b"))) yield* Effect.sleep("1 millis")
      }).pipe(Effect.timeout("10 seconds"))
    )
    yield* Effect.sleep("3 seconds")
    assert.isTrue(yield* goOwns(go, "a", "b"))
    return millis
  })

/**
 * Kills a Go consumer. Returns how long it takes an effect-simba consumer to own all its data streams, in milliseconds.
 */
export const goDies = (stage: Stage, hasEvents: boolean, count = 1) =>
  Effect.gen(function*() {
    const streams = Array.from({ length: count }, (_, i) => `s${i + 10}`)
    const go = yield* stage.go("stock")
    if (!hasEvents) yield* events(stage, "")
    yield* joined
    for (const stream of streams) yield* announceAsGo(stage, stream)
    yield* until("the Go consumer owns them", goOwns(go, ...streams))
    const own = yield* stage.own("ours")
    yield* own.run(() => Effect.never)
    yield* Effect.sleep("5 seconds")
    assert.deepStrictEqual(yield* ownedBy(own), [])
    yield* go.kill
    return yield* elapsed(until("effect-simba owns them", owns(own, ...streams)))
  })

/**
 * Cuts an effect-simba consumer off. Returns how long it takes a Go consumer to own its data stream, in milliseconds.
 */
export const ownDies = (stage: Stage) =>
  Effect.gen(function*() {
    yield* events(stage)
    const interrupted: Array<string> = []
    const own = yield* stage.own("ours")
    yield* own.run((stream) => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted.push(stream))))
    yield* joined
    yield* own.client.announceAll([{ stream: "a" }])
    yield* until("effect-simba owns it", owns(own, "a"))
    const go = yield* stage.go("stock", (stream) => Effect.sync(() => assert.deepStrictEqual(interrupted, [stream])))
    yield* Effect.sleep("5 seconds")
    yield* own.kill
    const millis = yield* elapsed(
      until(
        "the Go consumer owned it",
        Effect.sync(() => go.events.some(({ _tag }) => _tag === "Added"))
      )
    )
    assert.deepStrictEqual(interrupted, ["a"])
    yield* until("the data stream is done", Effect.map(stage.send("XLEN", input), (length) => length === 0))
    return millis
  })

/**
 * G3: when a Go consumer starts, it does not recover what an effect-simba consumer owns, not even what it has owned for
 * a long time.
 */
export const recovery: Scenario = (stage) =>
  Effect.gen(function*() {
    const own = yield* stage.own("ours")
    yield* own.run(() => Effect.never)
    yield* joined
    yield* own.client.announceAll(["a", "b", "c"].map((stream) => ({ stream })))
    yield* until("effect-simba owns them", owns(own, "a", "b", "c"))
    const before = yield* pending(stage)
    yield* Effect.sleep("90 seconds")
    const go = yield* stage.go("stock")
    yield* Effect.sleep("5 seconds")
    assert.deepStrictEqual(go.events, [])
    assert.deepStrictEqual(yield* pending(stage), before)
    assert.isTrue(yield* owns(own, "a", "b", "c"))
  })

/** G8: two announcements of one data stream are processed one after another, not concurrently. */
export const duplicates: Scenario = (stage) =>
  Effect.gen(function*() {
    let running = 0
    let runs = 0
    const work = Effect.acquireUseRelease(
      Effect.sync(() => {
        runs++
        assert.strictEqual(++running, 1)
      }),
      () => Effect.sleep("3 seconds"),
      () => Effect.sync(() => running--)
    )
    for (const id of ["one", "two"]) {
      const own = yield* stage.own(id)
      yield* own.run(() => work)
      yield* joined
    }
    yield* announceAsGo(stage, "twice")
    yield* announceAsGo(stage, "twice")
    yield* until("both are done", Effect.map(stage.send("XLEN", input), (length) => length === 0))
    assert.strictEqual(runs, 2)
    yield* Effect.sleep("1 second")
    yield* nothingLeft(stage)
  })

const go = "redis-consumer-go"

/** Announces data streams and delivers them to a Go consumer that has not locked them yet. */
const handedToGo = Effect.fnUntraced(function*(stage: Stage, ...streams: ReadonlyArray<string>) {
  yield* stage.send("XGROUP", "CREATE", input, group, "0", "MKSTREAM")
  const entries = yield* Effect.forEach(streams, (stream) => announceAsGo(stage, stream))
  yield* stage.send("XREADGROUP", "GROUP", group, go, "STREAMS", input, ">")
  return entries.map((entry, i) => ({ entry, lock: `${streams[i]}<MUTEX_KEY_SEP>${entry}` }))
})

/** Finishes a data stream like the Go client, which unlocks, acknowledges and deletes in three separate calls. */
const finishAsGo = Effect.fnUntraced(function*(
  stage: Stage,
  { entry, lock }: { readonly entry: string; readonly lock: string }
) {
  yield* stage.send("DEL", lock)
  yield* Effect.sleep("170 millis")
  yield* stage.send("XACK", input, group, entry)
  yield* Effect.sleep("30 millis")
  yield* stage.send("XDEL", input, entry)
})

/** Makes a Go consumer own `count` data streams with locks that never expire. */
export const lockedByGo = Effect.fnUntraced(function*(stage: Stage, count: number) {
  const delivered = yield* handedToGo(stage, ...Array.from({ length: count }, (_, i) => `s${i}`))
  for (const { lock } of delivered) yield* stage.send("SET", lock, go)
})

/** An entry delivered to a Go consumer but not yet locked is left alone until other Go consumers would take it. */
export const notLockedYet: Scenario = (stage) =>
  Effect.gen(function*() {
    const [slow, dead, brief] = yield* handedToGo(stage, "slow", "dead", "brief")
    const own = yield* stage.own("ours", { sweepInterval: "500 millis" })
    yield* own.run(() => Effect.never)
    // This lock expires while the entry is too young for sweeps, so no sweep observes the lock
    yield* stage.send("SET", brief!.lock, go, "NX", "PX", "1000")
    yield* Effect.sleep("3200 millis")
    // A late hint that was sent before the delivery to the Go consumer
    yield* stage.send("PUBLISH", `simba:streams:${input}`, `released@@${dead!.entry}@@dead`)
    assert.strictEqual(yield* stage.send("SET", slow!.lock, go, "NX", "PX", "2000"), "OK")
    // The Go consumer dies. A sweep has observed its lock, which then expires
    yield* Effect.sleep("1900 millis")
    assert.deepStrictEqual(yield* ownedBy(own), [])
    yield* Effect.sleep("1200 millis")
    assert.deepStrictEqual(yield* ownedBy(own), ["slow"])
    yield* Effect.sleep("33 seconds")
    assert.deepStrictEqual(yield* ownedBy(own), ["slow"])
    assert.isNull(yield* stage.send("GET", dead!.lock))
    yield* Effect.sleep("2 seconds")
    assert.isTrue(yield* owns(own, "brief", "dead", "slow"))
  })

/** Effect-simba consumers do not start a data stream that a Go consumer is finishing. */
export const finishing: Scenario = (stage) =>
  Effect.gen(function*() {
    const streams = Array.from({ length: 20 }, (_, i) => `s${i}`)
    const delivered = yield* handedToGo(stage, ...streams, "left")
    for (const { lock } of delivered) yield* stage.send("SET", lock, go, "PX", "60000")
    yield* Effect.sleep("3 seconds")
    const started: Array<string> = []
    const own = yield* stage.own("ours", { sweepInterval: "500 millis" })
    yield* own.run((stream) => Effect.andThen(Effect.sync(() => started.push(stream)), Effect.never))
    yield* Effect.sleep("1 second")
    for (const one of delivered.slice(0, -1)) yield* finishAsGo(stage, one)
    yield* Effect.sleep("1 second")
    assert.deepStrictEqual(started, [])
    // The Go consumer dies after the first of its three calls, so no lock is left to expire
    yield* stage.send("DEL", delivered[delivered.length - 1]!.lock)
    yield* Effect.sleep("1 second")
    assert.deepStrictEqual(started, ["left"])
  })

/** A Go consumer's lease ends when it expires, even if effect-simba's leases last longer. */
export const longerLeases: Scenario = (stage) =>
  Effect.gen(function*() {
    yield* events(stage)
    const [delivered] = yield* handedToGo(stage, "a")
    const own = yield* stage.own("ours", { leaseDuration: "10 seconds", sweepInterval: "1 hour" })
    yield* own.run(() => Effect.never)
    yield* Effect.sleep("500 millis")
    yield* stage.send("SET", delivered!.lock, go, "NX", "PX", "2000")
    yield* Effect.sleep("1900 millis")
    assert.deepStrictEqual(yield* ownedBy(own), [])
    yield* Effect.sleep("500 millis")
    assert.isTrue(yield* owns(own, "a"))
  })

/**
 * A Go consumer restarts before its lease expires and claims its entries again, but never locks them. They are taken
 * one lease after the expiry event. Entries that a read delivered to the Go consumer are left alone longer.
 */
export const claimedAndNeverLocked: Scenario = (stage) =>
  Effect.gen(function*() {
    yield* events(stage)
    const delivered = yield* handedToGo(stage, "a", "b", "c")
    const [claimed, read] = [delivered.slice(0, 2), delivered[2]!]
    const own = yield* stage.own("ours", { sweepInterval: "1 hour" })
    yield* own.run(() => Effect.never)
    yield* Effect.sleep("500 millis")
    for (const { lock } of delivered) yield* stage.send("SET", lock, go, "PX", "2000")
    yield* Effect.sleep("1700 millis")
    for (const { entry } of claimed) yield* stage.send("XCLAIM", input, group, go, "0", entry)
    yield* stage.send("XCLAIM", input, group, go, "0", read.entry, "RETRYCOUNT", "1", "JUSTID")
    yield* Effect.sleep("2 seconds")
    assert.deepStrictEqual(yield* ownedBy(own), [])
    yield* Effect.sleep("1 second")
    assert.deepStrictEqual(yield* ownedBy(own), ["a", "b"])
  })

/**
 * Effect-simba consumers do not start a data stream that a restarted Go consumer has claimed and locked and is
 * finishing.
 */
export const claimedAndFinishing: Scenario = (stage) =>
  Effect.gen(function*() {
    yield* events(stage)
    const [delivered] = (yield* handedToGo(stage, "a")) as [{ readonly entry: string; readonly lock: string }]
    const { entry, lock } = delivered
    const started: Array<string> = []
    const own = yield* stage.own("ours", { sweepInterval: "1 hour" })
    yield* own.run((stream) => Effect.andThen(Effect.sync(() => started.push(stream)), Effect.never))
    yield* Effect.sleep("500 millis")
    yield* stage.send("SET", lock, go, "PX", "2000")
    yield* Effect.sleep("1700 millis")
    yield* stage.send("XCLAIM", input, group, go, "0", entry)
    yield* Effect.sleep("1 second")
    yield* stage.send("SET", lock, go, "PX", "60000")
    // The effect-simba consumer makes its second check about 2.3 seconds after the claim
    yield* Effect.sleep("1200 millis")
    yield* finishAsGo(stage, delivered)
    yield* Effect.sleep("1 second")
    assert.deepStrictEqual(started, [])
  })

/** A Go consumer's entries are left alone even if an effect-simba consumer previously had the same name. */
export const sameName: Scenario = (stage) =>
  Effect.gen(function*() {
    const first = yield* stage.own("pod-1", { sweepInterval: "500 millis" })
    yield* first.run(() => Effect.never)
    yield* joined
    const other = yield* stage.own("pod-2", { sweepInterval: "500 millis" })
    yield* other.run(() => Effect.never)
    yield* joined
    yield* first.kill
    yield* Effect.sleep("1 second")
    yield* other.close
    const entries = yield* Effect.forEach(["a", "b"], (stream) => announceAsGo(stage, stream))
    yield* stage.send("XREADGROUP", "GROUP", group, "redis-consumer-pod-1", "STREAMS", input, ">")
    const next = yield* stage.own("pod-3", { sweepInterval: "500 millis" })
    yield* next.run(() => Effect.never)
    yield* Effect.sleep("6 seconds")
    assert.deepStrictEqual(yield* ownedBy(next), [])
    assert.deepStrictEqual((yield* pending(stage)).map(([entry]) => entry), entries)
  })

/** The expiry of an earlier owner's lease does not shorten the next Go consumer's time for the entry. */
export const earlierLease: Scenario = (stage) =>
  Effect.gen(function*() {
    yield* events(stage)
    const [delivered] = yield* handedToGo(stage, "a")
    const own = yield* stage.own("ours", {
      leaseDuration: "1500 millis",
      heartbeatInterval: "500 millis",
      sweepInterval: "1 hour"
    })
    yield* own.run(() => Effect.never)
    yield* stage.send("SET", delivered!.lock, "redis-consumer-before", "PX", "1600")
    yield* Effect.sleep("1900 millis")
    assert.isNull(yield* stage.send("GET", delivered!.lock))
    assert.deepStrictEqual(yield* ownedBy(own), [])
  })

/**
 * A Go consumer finishes a data stream late, after an effect-simba consumer has taken it over. The effect-simba
 * consumer stops, and nothing is processed again.
 */
export const lateDone: Scenario = (stage) =>
  Effect.gen(function*() {
    const go = yield* stage.go("stock")
    yield* joined
    const entry = yield* announceAsGo(stage, "a")
    yield* until("the Go consumer owns it", goOwns(go, "a"))
    yield* go.kill
    const interrupted: Array<string> = []
    const own = yield* stage.own("ours")
    yield* own.run((stream) => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted.push(stream))))
    yield* until("effect-simba owns it", owns(own, "a"))
    // The rest of the Go client's `Done` arrives late. It does not check whether another consumer has the lock
    yield* stage.send("XACK", input, group, entry)
    yield* stage.send("XDEL", input, entry)
    yield* until("effect-simba has stopped", Effect.sync(() => interrupted.length === 1))
    yield* Effect.sleep("5 seconds")
    assert.deepStrictEqual(yield* ownedBy(own), [])
    yield* nothingLeft(stage)
  })

/**
 * When a Go consumer shuts down, it finishes everything it owns, processed or not, but nothing that effect-simba
 * consumers own.
 */
export const goDone: Scenario = (stage) =>
  Effect.gen(function*() {
    yield* events(stage)
    // Capacity for one data stream, so that the Go consumer gets the other
    const own = yield* stage.own("ours", { capacity: 1 })
    yield* own.run(() => Effect.never)
    yield* joined
    yield* own.client.announceAll([{ stream: "a" }])
    yield* until("effect-simba owns it", owns(own, "a"))
    const go = yield* stage.go("stock")
    yield* joined
    yield* announceAsGo(stage, "b")
    yield* until("the Go consumer owns it", goOwns(go, "b"))
    yield* go.done
    yield* Effect.sleep("5 seconds")
    assert.isTrue(yield* owns(own, "a"))
    assert.strictEqual(yield* stage.send("XLEN", input), 1)
  })
