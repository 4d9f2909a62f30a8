/** A scenario for fake and real servers: announcements deleted while pending. */
import { type EntryId } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, Epoch, ServiceName, StreamStore } from "@effect-simba/core/streams/StreamStore"
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { freshName } from "./harness.ts"

const lease = Duration.seconds(20)
let epochs = 0
const epoch = () => Epoch.make(`s00000000000.${(++epochs).toString(36)}`)

/** Deletes three of four pending entries and checks how takes, sweeps and renewals treat the deleted entries. */
export const trimmed = Effect.gen(function*() {
  const redis = yield* Redis
  const { open } = yield* StreamStore
  const name = ServiceName.make(freshName("trimmed"))
  const service = yield* open(name)
  const consumer = ConsumerName.make("simba-consumer-a")
  yield* service.prepare
  const announced = yield* service.announce(
    ["one", "two", "three", "four"].map((label) => ({ stream: `${name} ${label}` as never, info: {} }))
  )
  const entries = announced.map(({ entry }) => entry)
  const read = yield* service.read({ consumer, count: 4, block: Duration.millis(10) })
  const streamOf = (entry: EntryId) => {
    const found = read.find((one) => one.entry === entry)
    assert.strictEqual(found?._tag, "Announced")
    return (found as Extract<typeof found, { readonly _tag: "Announced" }>).stream
  }
  const request = (entry: EntryId) => ({
    stream: streamOf(entry),
    entry,
    consumer,
    epoch: epoch(),
    lease,
    minIdle: Duration.zero,
    maxFailures: 10
  })
  const [first, second, third, fourth] = entries as [EntryId, EntryId, EntryId, EntryId]
  const wanted = request(first)
  const [held] = yield* service.take([wanted])
  assert.strictEqual(held?._tag, "Taken")
  yield* redis.send("XDEL", StreamKeys.input(name), first, second, third)

  // A take, a sweep and a renewal treat the deleted entries as gone, without affecting the remaining one
  assert.deepStrictEqual(
    (yield* service.take([request(second), request(fourth)])).map(({ _tag }) => _tag),
    ["Gone", "Taken"]
  )
  const { entries: left } = yield* service.pending({ minIdle: Duration.zero, count: 10 })
  assert.deepStrictEqual(left.map(({ content }) => content.entry), [fourth])
  const token = held?._tag === "Taken" ? held.token : 0 as never
  assert.deepStrictEqual(yield* service.renew([{ ...wanted, token }], lease), [{ _tag: "Lost", reason: "Vanished" }])
  const [count] = yield* redis.send<[number]>("XPENDING", StreamKeys.input(name), StreamKeys.group(name))
  assert.strictEqual(count, 1, "the deleted entries are no longer pending")
})
