/** How a Cluster client reconnects. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { ClusterClient } from "../../src/internal/client/ioredis/slotRefresh.ts"

type Resolve = (error: null, address: string) => void

it.live.each([[false, 2], [true, 1]] as const)(
  "if an old connection ends during name resolution, the client retries unless it was closed (%s)",
  ([isClosed, attempts]) =>
    Effect.gen(function*() {
      const lookups: Array<Resolve> = []
      const client = yield* Effect.acquireRelease(
        Effect.sync(() =>
          new ClusterClient([{ host: "redis.invalid", port: 1 }], {
            lazyConnect: true,
            clusterRetryStrategy: () => 0,
            dnsLookup: (_host, done) => void lookups.push(done as Resolve)
          })
        ),
        (client) => Effect.sync(() => client.disconnect())
      )
      const aborted = client.connect().catch((error: Error) => error.message)
      if (isClosed) client.disconnect()
      client["connectionPool"].emit("drain")
      lookups[0]!(null, "127.0.0.1")
      assert.strictEqual(yield* Effect.promise(() => aborted), "Connection is aborted")
      for (const event of isClosed ? ["end"] : ["reconnecting", "connecting"]) {
        yield* Effect.promise(() => new Promise((resolve) => client.once(event, resolve)))
      }
      assert.lengthOf(lookups, attempts)
    })
)

it.live.each([
  ["MOVED 5 :7000", "MOVED 5 ::2:7000"],
  ["ASK 5 :7000", "ASK 5 ::2:7000"],
  ["MOVED 5 ::1:7000", "MOVED 5 ::1:7000"],
  ["ASK 5 10.0.0.1:7000", "ASK 5 10.0.0.1:7000"]
])("only a redirection without a host names the host that sent it (%s)", ([text, redirection]) =>
  Effect.sync(() => {
    const client = new ClusterClient([{ host: "redis.invalid", port: 1 }], { lazyConnect: true })
    const error = new Error(text)
    assert.isFalse(client.options.redisOptions!.reconnectOnError!.call({ host: "::2" }, error))
    assert.strictEqual(error.message, redirection)
  }))
