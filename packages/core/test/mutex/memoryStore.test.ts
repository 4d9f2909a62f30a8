/** What the store in memory remembers about a mutex that nobody uses. */
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

it("a mutex that is released in the millisecond of its grant is idle, and another one continues with larger tokens", () => {
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

const collect = (() => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc") as () => void
})()

it.effect("a mutex that nobody uses takes no memory, however many names there were", () =>
  Effect.gen(function*() {
    const store = yield* MutexStore.MutexStore
    const use = Effect.fnUntraced(function*(from: number, count: number) {
      for (let counter = from; counter < from + count; counter++) {
        const subject = { mutex: MutexName.MutexName.make(`m ${counter}`), id: id(counter) }
        yield* store.acquire({ ...subject, mode: "try", ...times })
        yield* MutexStore.release(store, { ...subject, ...times })
      }
      collect()
      return process.memoryUsage().heapUsed
    })
    const before = yield* use(0, 1000)
    // An entry has about 800 bytes
    assert.isBelow((yield* use(1000, 20_000)) - before, 20_000 * 100)
  }).pipe(Effect.provide(MutexStore.layerMemory)))

describe("a mutex in memory", () => {
  const confirm = Duration.toMillis(times.confirm)
  const at = (millis: number) => ({ monotonic: millis, wall: 1_000_000 + millis })

  /** One that is held since 1 s, with two that wait, and what they receive. */
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

  it("has the next waiter poll at the end of the lease when the first one leaves", () => {
    const { one, received } = stage()
    one.advance(at(6000))
    one.release({ mutex, id: id(2), ...times })
    assert.deepStrictEqual(received, [[3, { _tag: "PollAfter", delay: Duration.millis(11_000) }]])
  })

  it("grants a whole lease to a waiter that queued within the confirm period, else that period", () => {
    for (const [age, period] of [[confirm, 16_000], [confirm + 1, confirm]] as const) {
      const { one } = stage()
      one.advance(at(1000 + age))
      one.release({ mutex, id: id(1), ...times })
      assert.deepStrictEqual(one.ownership(), { _tag: "Held", owner: id(2), timeLeft: Duration.millis(period) })
    }
  })
})

it.effect("an inspection names a hundred waiters, unless it is asked for another number", () =>
  Effect.gen(function*() {
    const store = yield* MutexStore.MutexStore
    for (let counter = 1; counter <= 103; counter++) {
      yield* store.acquire({ mutex, id: id(counter), mode: "wait", ...times })
    }
    const named = (options?: Parameters<typeof Mutex.inspect>[1]) =>
      Effect.map(Mutex.inspect("m", options), ({ waiters, waiting }) => [waiting, waiters.length])
    assert.deepStrictEqual(yield* named(), [102, 100])
    assert.deepStrictEqual(yield* named({ limit: 2 }), [102, 2])
  }).pipe(Effect.provide(Mutex.layer().pipe(Layer.provideMerge(MutexStore.layerMemory)))))
