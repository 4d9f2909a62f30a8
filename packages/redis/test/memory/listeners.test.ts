/** The listeners that layers add to a client of the application. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Cluster, Redis as Client } from "ioredis"
import { EventEmitter } from "node:events"
import { listen, listenToNodes } from "../../src/internal/client/ioredis/listeners.ts"

it.effect.each([10, 1, 0])(
  "Node's limit of %s listeners leaves as much room to the application as before",
  (limit) =>
    Effect.gen(function*() {
      const client = new Client({ lazyConnect: true })
      const own = client.listenerCount("close")
      client.setMaxListeners(limit)
      yield* Effect.scoped(Effect.gen(function*() {
        for (let i = 0; i < 20; i++) yield* listen(client, { close: () => {}, ready: () => {} })
        assert.strictEqual(client.listenerCount("close"), own + 20)
        assert.strictEqual(client.getMaxListeners(), limit === 0 ? 0 : limit + 20)
      }))
      assert.strictEqual(client.listenerCount("close"), own)
      assert.strictEqual(client.getMaxListeners(), limit)
    })
)

it.effect("Node's limit is also as before on nodes that left, that joined, and that were always there", () =>
  Effect.gen(function*() {
    const [former, joined, stayed] = Array.from({ length: 3 }, () => new Client({ lazyConnect: true }))
    const cluster = Object.assign(new EventEmitter(), { nodes: () => [former, stayed] })
    const limits = () => [cluster, former!, joined!, stayed!].map((client) => client.getMaxListeners())
    yield* Effect.scoped(Effect.gen(function*() {
      for (let i = 0; i < 20; i++) yield* listenToNodes(cluster as unknown as Cluster, () => ({ close: () => {} }))
      assert.deepStrictEqual(limits(), [30, 30, 10, 30])
      cluster.emit("-node", former)
      cluster.emit("+node", joined)
      assert.deepStrictEqual(limits(), [30, 10, 30, 30])
      assert.strictEqual(joined!.listenerCount("close"), stayed!.listenerCount("close"))
    }))
    assert.deepStrictEqual(limits(), [10, 10, 10, 10])
    assert.strictEqual(stayed!.listenerCount("close"), former!.listenerCount("close"))
    assert.strictEqual(cluster.listenerCount("+node"), 0)
  }))
