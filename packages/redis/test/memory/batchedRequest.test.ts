/** Batched requests, which share a call to the server. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as batchedRequest from "../../src/streams/internal/batchedRequest.ts"

it.effect("all requests in a call fail if replies are missing, because the others cannot be matched with their requests", () =>
  Effect.gen(function*() {
    let calls = 0
    const done = batchedRequest.make("done", (items: ReadonlyArray<number>) =>
      Effect.sync(() => {
        calls++
        return items.slice(1)
      }))
    const errors = yield* Effect.forEach([1, 2, 3], (item) => Effect.flip(done(item)), { concurrency: "unbounded" })
    assert.deepStrictEqual(errors.map(({ _tag }) => _tag), ["ProtocolError", "ProtocolError", "ProtocolError"])
    assert.strictEqual(calls, 1)
    const list = batchedRequest.inCalls([1, 2], (items) => Effect.succeed(items.slice(1)))
    assert.strictEqual((yield* Effect.flip(list))._tag, "ProtocolError")
  }))
