import { assert, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { RedisServer } from "../../support/redisServer.ts"

it.live("cluster: commands go to the node that stores their key", () =>
  Effect.gen(function*() {
    const { nodes } = yield* RedisServer.cluster()
    const replies = yield* Effect.forEach(nodes, (node) => Effect.exit(node.send("SET", "key", "value")))
    assert.strictEqual(replies.filter(Exit.isSuccess).length, 1)
    assert.strictEqual(
      replies.filter((exit) => Exit.isFailure(exit) && String(exit.cause).includes("MOVED")).length,
      2
    )
  }))
