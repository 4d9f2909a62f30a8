/** Mutexes on one server, and on one address behind which another server becomes the primary. */
import { Mutex } from "@effect-simba/core"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis } from "@effect-simba/redis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Queue } from "effect"
import { Redis } from "effect/persistence/Redis"
import { capturingLogs, until } from "../../support/harness.ts"
import { RedisServer } from "../../support/redisServer.ts"
import { relayTo } from "../../support/relay.ts"
import { contract, mutexes } from "../../support/topologyContract.ts"

const onOne = Layer.unwrap(Effect.map(RedisServer, ({ url }) => mutexes(IoRedis.layer({ url })))).pipe(
  Layer.provide(RedisServer.layer)
)

contract("single", onOne)

describe("one address", () => {
  it.live(
    "if another server becomes the primary, all connections leave the old one, and Node emits no warning",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const old = yield* RedisServer.start()
        const next = yield* RedisServer.start()
        const relay = yield* relayTo(old.port)
        const context = yield* Layer.build(
          mutexes(IoRedis.layer({ url: `redis://127.0.0.1:${relay.port}`, commandTimeout: "500 millis" }))
        )
        const subscriber = Context.get(context, Subscriber)
        const notices = yield* subscriber.subscribe("channel")
        relay.target = next.port
        // The connections to the old server stay open. Messages at the new primary are counted at that primary.
        yield* old.send("REPLICAOF", "127.0.0.1", String(next.port))
        const warnings: Array<Error> = []
        const onWarning = (warning: Error) => warnings.push(warning)
        yield* Effect.acquireRelease(
          Effect.sync(() => process.on("warning", onWarning)),
          () => Effect.sync(() => process.off("warning", onWarning))
        )
        const set = Effect.exit(Context.get(context, Redis).send("SET", "key", "value"))
        yield* Effect.all(Array.from({ length: 30 }, () => set), { concurrency: "unbounded" })
        yield* until(
          "the new primary has the mutexes",
          Effect.map(Effect.exit(Mutex.withLock("m")(Effect.void).pipe(Effect.provide(context))), Exit.isSuccess)
        )
        yield* until(
          "the layer has subscribed at the new primary",
          Effect.map(next.send("PUBSUB", "NUMSUB", "channel"), (counts) => Array.isArray(counts) && counts[1] === 1)
        )
        assert.deepInclude(yield* Queue.take(notices), { _tag: "Gap" })
        const list = String(yield* old.send("CLIENT", "LIST"))
        assert.notMatch(list, /\bname=simba:(commands|subscriber)/)
        assert.deepStrictEqual(warnings, [])
      })).pipe(Effect.provide(capturingLogs([])))
  )
})
