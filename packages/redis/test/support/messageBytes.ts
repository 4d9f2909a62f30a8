/** A scenario for fake and real servers: a message with invalid UTF-8 is dead-lettered and redriven unchanged. */
import { FencingToken } from "@effect-simba/core/FencingToken"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, Epoch, ServiceName, StreamStore } from "@effect-simba/core/streams/StreamStore"
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Redis } from "effect/persistence/Redis"
import { freshName } from "./harness.ts"

/** Bytes as a Lua literal, because JavaScript strings cannot represent invalid UTF-8. */
const bytes = String.raw`'\255\0\254\128 simba'`

const addBytes = `return redis.call('XADD', KEYS[1], '*', 'bytes', ${bytes}, ${bytes}, '', 'simba-id', 'own')`

/** Returns how many fields and values the last message contains, and how many of them equal `bytes`. */
const countBytes = `
  local fields, count = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1][2], 0
  for _, text in ipairs(fields) do count = count + (text == ${bytes} and 1 or 0) end
  return { #fields, count }`

export const messageBytes = Effect.gen(function*() {
  const { send } = yield* Redis
  const { open } = yield* StreamStore
  const tag = freshName("bytes")
  const service = yield* open(ServiceName.make(tag))
  yield* service.prepare
  const stream = StreamName.make(`${tag}:one`)
  const consumer = ConsumerName.make("simba-consumer-a")
  const [announced] = yield* service.announce([{ stream, info: {} }])
  yield* service.read({ consumer, count: 1, block: Duration.millis(1) })
  const epoch = Epoch.make("abcdefghijkl.1")
  const [taken] = yield* service.take([{
    stream,
    entry: announced!.entry,
    consumer,
    epoch,
    lease: Duration.minutes(1),
    minIdle: Duration.zero,
    maxFailures: 10
  }])
  const token = taken?._tag === "Taken" ? taken.token : FencingToken.make(0)
  const held = { stream, entry: announced!.entry, consumer, epoch, token }

  yield* send("EVAL", addBytes, "1", stream)
  const [message] = yield* service.messages(stream, EntryId.make("0-0"), 10)
  assert.strictEqual(yield* service.deadLetterMessage(held, message!, "unreadable"), "DeadLettered")
  assert.strictEqual(yield* service.deadLetterMessage(held, message!, "unreadable"), "DeadLettered")
  assert.deepStrictEqual(yield* send("EVAL", countBytes, "1", `simba:dead:${stream}`), [12, 2])
  yield* send("DEL", stream)
  const [letter, ...others] = yield* service.deadMessages(stream, undefined, 10)
  assert.deepStrictEqual(others, [])
  assert.isTrue(yield* service.redriveMessage(stream, letter!.id))
  assert.deepStrictEqual(yield* send("EVAL", countBytes, "1", stream), [6, 2])
})
