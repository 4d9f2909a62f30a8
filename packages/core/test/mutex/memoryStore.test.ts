/** What the store in memory remembers of a mutex that nobody uses. */
import { type FencingToken, MutexName } from "@effect-simba/core"
import { assert, it } from "@effect/vitest"
import { Duration } from "effect"
import { MemoryMutex } from "../../src/internal/mutex/memoryStore.ts"

const mutex = MutexName.MutexName.make("m")
const id = (counter: number) => `${counter}-aaaaaaaaaaaa:us` as MutexName.ContenderId
const times = { lease: Duration.seconds(16), confirm: Duration.seconds(1) }

it("a mutex that is released in the millisecond of its grant is idle, and another one goes on with larger tokens", () => {
  let last = { token: 0, ticket: 0 }
  const used = (counter: number, lastToken?: number) => {
    const one = new MemoryMutex(last)
    one.advance(1000, 1000)
    const result = one.acquire({ mutex, id: id(counter), mode: "wait", reserve: 4, ...times })
    assert.isFalse(one.isIdle())
    one.release({ mutex, id: id(counter), confirm: times.confirm, lastToken: lastToken as FencingToken.FencingToken })
    assert.isTrue(one.isIdle())
    last = one.lastOf(last)
    return result._tag === "Granted" ? result.token : 0
  }
  assert.deepStrictEqual([used(1), used(2), used(3, 1_000_012), used(4)], [1_000_000, 1_000_005, 1_000_010, 1_000_013])
})
