/** How each error reply is reported to the caller, whose connection keeps working. */
import { BackendError } from "@effect-simba/core/SimbaError"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis } from "@effect-simba/redis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schedule, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { fromRedis } from "../../src/internal/client/errors.ts"
import * as script from "../../src/internal/client/script.ts"
import { refusingServer } from "../support/refusingServer.ts"

/** The reply, whether the error is retryable, and a part of the error's message. */
const replies: ReadonlyArray<readonly [reply: string, isRetryable: boolean, message: string]> = [
  ["MOVED 5 127.0.0.1:1", false, "a node of a Redis Cluster (MOVED): use IoRedis.layerCluster"],
  ["ASK 5 127.0.0.1:1", true, "ASK 5"],
  ["TRYAGAIN Multiple keys request during rehashing of slot", true, "TRYAGAIN"],
  ["CLUSTERDOWN The cluster is down", true, "CLUSTERDOWN"],
  ["LOADING Redis is loading the dataset in memory", true, "LOADING"],
  ["BUSY Redis is busy running a script", true, "BUSY"],
  ["MASTERDOWN Link with MASTER is down", true, "MASTERDOWN"],
  ["NOREPLICAS Not enough good replicas to write.", true, "NOREPLICAS"],
  ["MISCONF Errors writing to the AOF file", true, "MISCONF"],
  ["OOM command not allowed when used memory > 'maxmemory'.", true, "(OOM): raise its maxmemory"],
  ["READONLY You can't write against a read only replica.", true, "(READONLY): connect to its primary"],
  ["UNBLOCKED force unblock from blocking operation", true, "UNBLOCKED"],
  ["NOAUTH Authentication required.", false, "NOAUTH"],
  ["WRONGPASS invalid username-password pair or user is disabled.", false, "WRONGPASS"],
  ["NOPERM User default has no permissions", false, "grant it with ACL SETUSER"],
  ["WRONGTYPE Operation against a key", false, "of the wrong type (WRONGTYPE)"],
  ["ERR unknown", false, "ERR unknown"]
]

const kinds = {
  "a script": {
    command: "EVALSHA",
    run: ({ redis }: Services) =>
      script.call(redis, "run", script.script("return '{}'", Schema.String, () => [["key"], []] as const))({})
  },
  "a plain command": {
    command: "SET",
    run: ({ redis }: Services) => Effect.mapError(redis.send("SET", "key", "value"), fromRedis("run"))
  },
  "a blocking read": {
    command: "XREAD",
    run: ({ redis }: Services) =>
      Effect.scoped(Effect.flatMap(redis.reserve, ({ send }) => send("XREAD", "BLOCK", "1", "STREAMS", "key", "$")))
        .pipe(
          Effect.mapError(fromRedis("run"))
        )
  },
  "a subscription": {
    command: "SUBSCRIBE",
    run: ({ subscriber }: Services) => Effect.scoped(subscriber.subscribe("channel"))
  }
}

interface Services {
  readonly redis: Redis["Service"]
  readonly subscriber: Subscriber["Service"]
}

describe("an error reply", () => {
  it.live.each(Object.entries(kinds))(
    "to %s is reported with its remedy, and is retryable if it may be temporary",
    ([, kind]) =>
      Effect.gen(function*() {
        const server = yield* refusingServer
        const context = yield* Layer.build(Layer.fresh(IoRedis.layer({ url: server.url })))
        const services = { redis: Context.get(context, Redis), subscriber: Context.get(context, Subscriber) }
        for (const [reply, isRetryable, message] of replies) {
          server.refuse = { command: kind.command, reply }
          const error = yield* Effect.flip(kind.run(services) as Effect.Effect<unknown, unknown>)
          assert.instanceOf(error, BackendError)
          const { cause } = error as BackendError
          assert.deepStrictEqual([reply, (error as BackendError).isRetryable], [reply, isRetryable])
          assert.include((cause as Error).message, message)
          server.refuse = undefined
          yield* Effect.retry(kind.run(services) as Effect.Effect<unknown, unknown>, {
            schedule: Schedule.spaced("20 millis"),
            times: 100
          })
        }
      })
  )
})
