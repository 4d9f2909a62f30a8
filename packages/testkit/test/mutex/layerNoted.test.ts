/** Tests what `layerNoted` records about a process's use of mutexes. */
import { Mutex } from "@effect-simba/core"
import { type Simulation, TestMutex } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"

const noting = () => {
  const notes: Array<string> = []
  const client = { note: (kind: string) => void notes.push(kind) } as unknown as Simulation.Client
  return { notes, layer: TestMutex.layerNoted(client).pipe(Layer.provide(Mutex.layerMemory())) }
}

describe("layerNoted", () => {
  it.effect("records waiting for a lock and working under it", () =>
    Effect.gen(function*() {
      const { layer, notes } = noting()
      yield* Effect.void.pipe(Mutex.withLock("m"), Effect.provide(layer))
      assert.deepStrictEqual(notes, ["waiting", "waited", "granted", "begin", "stopped", "end", "waited"])
    }))

  it.effect("records the work of a contender", () =>
    Effect.gen(function*() {
      const { layer, notes } = noting()
      yield* Effect.gen(function*() {
        const contender = yield* Mutex.contend("m")
        yield* Effect.forkScoped(contender.whileLeader(Effect.never), { startImmediately: true })
        for (let turn = 0; turn < 100; turn++) yield* Effect.yieldNow
        assert.deepStrictEqual(notes, ["granted", "begin"])
      }).pipe(Effect.scoped, Effect.provide(layer))
      assert.deepStrictEqual(notes, ["granted", "begin", "stopped", "end"])
    }))
})
