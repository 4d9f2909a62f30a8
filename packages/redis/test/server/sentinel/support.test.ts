import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { RedisServer } from "../../support/redisServer.ts"

it.live("sentinels: the replica is promoted after the primary is killed", () =>
  Effect.gen(function*() {
    const { primary, primaryPort, replica } = yield* RedisServer.sentinel()
    assert.strictEqual(yield* primaryPort, primary.port)
    yield* primary.send("SET", "key", "value")
    yield* primary.send("WAIT", "1", "1000")
    yield* primary.kill()
    while ((yield* primaryPort) !== replica.port) yield* Effect.sleep("50 millis")
    while (String(yield* replica.send("ROLE")).startsWith("slave")) yield* Effect.sleep("50 millis")
    assert.strictEqual(yield* replica.send("GET", "key"), "value")
    assert.strictEqual(yield* replica.send("SET", "key", "next"), "OK")
  }))
