/** The listeners that layers add to a client of the application. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Redis as Client } from "ioredis"
import { listen } from "../../src/internal/client/ioredis/listeners.ts"

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
