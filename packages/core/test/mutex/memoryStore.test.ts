/** What the store in memory remembers about a mutex that nobody uses. */
import { MutexName } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
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
