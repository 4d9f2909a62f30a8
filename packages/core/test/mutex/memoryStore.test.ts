/** Mutexes in the in-process store: memory use, expiry, order and tokens. */
import { Mutex, MutexName } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { MemoryMutex } from "../../src/internal/mutex/memoryStore.ts"

const mutex = MutexName.MutexName.make("m")
const id = (counter: number) => `${counter}-aaaaaaaaaaaa:us` as MutexName.LeaseId
const times = { lease: Duration.seconds(16), confirm: Duration.seconds(1) }

it("a mutex that is released in the same millisecond as its grant is idle, and the next mutex has larger tokens", () => {
  let last = { token: 0, ticket: 0 }
  const used = (counter: number) => {
    const one = new MemoryMutex(last)
    one.advance({ monotonic: 1000, wall: 1000 })
    const result = one.acquire({ mutex, id: id(counter), mode: "wait", ...times })
    assert.isFalse(one.isIdle())
    one.release({ mutex, id: id(counter), ...times })
    assert.isTrue(one.isIdle())
    last = one.lastOf(last)
    return result._tag === "Granted" ? result.token : 0
  }
  assert.deepStrictEqual([used(1), used(2), used(3)], [1_000_100, 1_000_201, 1_000_202])
})

it("the whole stride of an idle mutex counts as used", () => {
  const one = new MemoryMutex({ token: 0, ticket: 0 })
  one.advance({ monotonic: 1000, wall: 1000 })
  one.acquire({ mutex, id: id(1), mode: "try", ...times })
  const tokens = [0, 1_000_150, 1_000_250].map((token) => one.lastOf({ token, ticket: 0 }).token)
  assert.deepStrictEqual(tokens, [1_000_199, 1_000_199, 1_000_250])
})

const collect = (() => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc") as () => void
})()

it.effect("unused mutexes use no memory", () =>
  Effect.gen(function*() {
    const store = yield* MutexStore.MutexStore
    const use = Effect.fnUntraced(function*(from: number, count: number) {
      for (let counter = from; counter < from + count; counter++) {
        const subject = { mutex: MutexName.MutexName.make(`m ${counter}`), id: id(counter) }
        yield* MutexStore.acquire(store, { ...subject, mode: "try", ...times })
        yield* MutexStore.release(store, { ...subject, ...times })
      }
      collect()
      return process.memoryUsage().heapUsed
    })
    const before = yield* use(0, 1000)
    // An entry takes about 800 bytes
    assert.isBelow((yield* use(1000, 20_000)) - before, 20_000 * 100)
  }).pipe(Effect.provide(MutexStore.layerMemory)))

describe("a mutex in memory", () => {
  const confirm = Duration.toMillis(times.confirm)
  const at = (millis: number) => ({ monotonic: millis, wall: 1_000_000 + millis })

  /** A mutex that `a` acquired at 1 s, with two waiters, and the messages to the waiters. */
  const stage = () => {
    const one = new MemoryMutex({ token: 0, ticket: 0 })
    const received: Array<readonly [number, MutexStore.WakeUp]> = []
    one.advance(at(1000))
    one.acquire({ mutex, id: id(1), mode: "try", ...times })
    for (const counter of [2, 3]) {
      one.listen(id(counter), (wakeUp) => received.push([counter, wakeUp]))
      one.acquire({ mutex, id: id(counter), mode: "wait", ...times })
    }
    return { one, received }
  }

  it("makes the next waiter poll at the end of the lease if the first waiter leaves", () => {
    const { one, received } = stage()
    one.advance(at(6000))
    one.release({ mutex, id: id(2), ...times })
    assert.deepStrictEqual(received, [[3, { _tag: "PollAfter", delay: Duration.millis(11_000) }]])
  })

  it("ranks waiters by tickets with six decimals, which differ even within the same microsecond", () => {
    const { one } = stage()
    const ask = (counter: number, ticket?: MutexStore.Ticket) => {
      one.listen(id(counter), () => {})
      const result = one.acquire({ mutex, id: id(counter), mode: "wait", ...times, ...(ticket && { ticket }) })
      return result._tag === "Refused" ? [`${result.ticket}`, result.position] : []
    }
    assert.deepStrictEqual(ask(2), ["1001.000000", 0])
    assert.deepStrictEqual(ask(3), ["1001.000001", 1])
    one.advance(at(6000.25))
    assert.deepStrictEqual(ask(4), ["1006.000250", 2])
    assert.deepStrictEqual(ask(5), ["1006.000251", 3])
    // A waiter that has left keeps its ticket. A ticket in the future is replaced with the current time.
    one.release({ mutex, id: id(3), ...times })
    assert.deepStrictEqual(ask(3, "1001.000001" as MutexStore.Ticket), ["1001.000001", 1])
    assert.deepStrictEqual(ask(6, "2000.000000" as MutexStore.Ticket), ["1006.000253", 4])
    assert.deepStrictEqual(one.inspect(10).waiters.map((waiter) => waiter.id), [2, 3, 4, 5, 6].map(id))
    // A request that does not wait does not get a place
    const refused = one.acquire({ mutex, id: id(7), mode: "try", ...times })
    assert.deepInclude(refused, { _tag: "Refused", ticket: undefined, position: 0, foreign: false })
  })

  it("is owned until the last millisecond of the lease has passed", () => {
    const { one } = stage()
    one.advance(at(17_000))
    assert.deepStrictEqual(one.ownership(), { _tag: "Held", owner: id(1), timeLeft: Duration.zero })
    one.advance(at(17_001))
    assert.deepStrictEqual(one.ownership(), { _tag: "Free" })
  })

  it("is granted to the waiter with the earliest ticket after a lease has expired", () => {
    for (const [ticket, owner] of [["1000.000000", 4], ["1001.000001", 2], [undefined, 2]] as const) {
      const { one } = stage()
      one.advance(at(17_001))
      one.acquire({ mutex, id: id(4), mode: "wait", ...times, ...(ticket && { ticket: ticket as MutexStore.Ticket }) })
      assert.deepInclude(one.ownership(), { owner: id(owner) })
    }
  })

  it("serves the first waiter if the previous owner releases it after its lease has expired, as on Redis", () => {
    const { one, received } = stage()
    one.advance(at(17_001))
    assert.deepStrictEqual(one.release({ mutex, id: id(1), ...times }), { requeued: undefined })
    assert.deepInclude(one.ownership(), { owner: id(2) })
    assert.deepStrictEqual(received[0], [2, { _tag: "YourTurn" }])
  })

  it("makes the next waiter poll immediately if the first one leaves at the end of the lease", () => {
    const { one, received } = stage()
    one.advance(at(17_000))
    one.release({ mutex, id: id(2), ...times })
    assert.deepStrictEqual(received, [[3, { _tag: "PollAfter", delay: Duration.zero }]])
  })

  it("refuses to confirm another grant", () => {
    const { one } = stage()
    const confirm = (counter: number, token: number) =>
      one.confirm({ mutex, id: id(counter), lease: times.lease, token: token as never })
    const { token } = one.inspect(0)
    const ownership = one.ownership()
    const refused = { _tag: "Refused", ownership, ticket: undefined, position: 0, foreign: false } as const
    assert.deepStrictEqual(confirm(1, token! + 1), refused)
    assert.deepStrictEqual(confirm(2, token!), refused)
    one.advance(at(5000))
    assert.deepStrictEqual(confirm(1, token!), { _tag: "Granted", token: token! })
    assert.deepInclude(one.ownership(), { timeLeft: times.lease })
  })

  it("includes the position of a queued place in the reply to a release", () => {
    const requeue = { id: id(4), lease: times.lease }
    const { one } = stage()
    one.listen(id(4), () => {})
    // The first waiter is granted the mutex
    assert.deepStrictEqual(one.release({ mutex, id: id(1), ...times, requeue }), {
      requeued: { ownership: one.ownership(), ticket: "1001.000002" as never, token: undefined, position: 1 }
    })
    const alone = new MemoryMutex({ token: 0, ticket: 0 })
    alone.advance(at(1000))
    alone.acquire({ mutex, id: id(1), mode: "try", ...times })
    const { requeued } = alone.release({ mutex, id: id(1), ...times, requeue })
    assert.deepInclude(requeued, { ownership: alone.ownership(), position: 0 })
    assert.strictEqual(requeued!.token, alone.inspect(0).token)
    assert.deepInclude(alone.ownership(), { owner: id(4), timeLeft: times.lease })
  })

  it("grants a larger token after a forced release", () => {
    const { one } = stage()
    const before = one.inspect(0).token!
    assert.deepInclude(one.force(times.confirm), { owner: id(1) })
    assert.isAbove(one.inspect(0).token!, before + 99)
    const alone = new MemoryMutex({ token: 0, ticket: 0 })
    alone.advance(at(1000))
    const first = alone.acquire({ mutex, id: id(1), mode: "try", ...times })
    alone.force(times.confirm)
    assert.strictEqual(alone.inspect(0).token, undefined)
    const second = alone.acquire({ mutex, id: id(2), mode: "try", ...times })
    assert.isTrue(first._tag === "Granted" && second._tag === "Granted" && second.token > first.token + 99)
  })

  it("grants a whole lease to a waiter that queued within the last confirm period, and otherwise a confirm period", () => {
    for (const [age, period] of [[confirm, 16_000], [confirm + 1, confirm]] as const) {
      const { one } = stage()
      one.advance(at(1000 + age))
      one.release({ mutex, id: id(1), ...times })
      assert.deepStrictEqual(one.ownership(), { _tag: "Held", owner: id(2), timeLeft: Duration.millis(period) })
    }
  })
})

it.effect("an inspection lists up to a hundred waiters by default", () =>
  Effect.gen(function*() {
    const store = yield* MutexStore.MutexStore
    for (let counter = 1; counter <= 103; counter++) {
      yield* MutexStore.acquire(store, { mutex, id: id(counter), mode: "wait", ...times })
    }
    const named = (options?: Parameters<typeof Mutex.inspect>[1]) =>
      Effect.map(Mutex.inspect("m", options), ({ waiters, waiting }) => [waiting, waiters.length])
    assert.deepStrictEqual(yield* named(), [102, 100])
    assert.deepStrictEqual(yield* named({ limit: 2 }), [102, 2])
  }).pipe(Effect.provide(Mutex.layer().pipe(Layer.provideMerge(MutexStore.layerMemory)))))
