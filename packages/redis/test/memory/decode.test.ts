/** Subscriptions skip messages that cannot be decoded. */
import { ProtocolError } from "@effect-simba/core/SimbaError"
import type { Notice, Subscriber } from "@effect-simba/core/Subscriber"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Logger, Queue } from "effect"
import { subscribe } from "../../src/internal/client/decode.ts"

const broken = Logger.make<unknown, void>(() => {
  throw new Error("the logger is broken")
})

const read = (text: unknown) =>
  text === "good"
    ? Exit.succeed(text)
    : Exit.fail(new ProtocolError({ where: "a test", read: String(text), problem: "not good" }))

it.effect("a malformed message is skipped even if the logger throws", () =>
  Effect.gen(function*() {
    const queue = yield* Queue.unbounded<Notice>()
    const subscriber: Subscriber["Service"] = {
      subscribe: () => Effect.succeed(queue),
      countable: true,
      bound: undefined
    }
    const { next } = yield* subscribe(subscriber, "c", read, { gap: "gap", message: (text) => text })
    yield* Queue.offer(queue, { _tag: "Message", channel: "c", text: "bad" })
    yield* Queue.offer(queue, { _tag: "Message", channel: "c", text: "good" })
    assert.strictEqual(yield* next, "good")
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([broken]))))
