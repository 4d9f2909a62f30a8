/** Tests how a client lists and redrives many dead letters. */
import { StreamClient } from "@effect-simba/core/streams"
import { EntryId } from "@effect-simba/core/streams/StreamName"
import type { DeadLetter } from "@effect-simba/core/streams/StreamState"
import * as StreamStore from "@effect-simba/core/streams/StreamStore"
import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { Backend } from "../support/streamBackend.ts"

const letter = (n: number): DeadLetter => ({
  id: EntryId.make(`${n}-0`),
  entry: EntryId.make(`${n}-0`),
  stream: undefined,
  reason: "failed",
  fields: []
})

/** A client for a service with dead letters. `counted` is the number that `inspect` reports. */
const setup = Effect.fnUntraced(function*(count: number, counted = count) {
  const requests: Array<string> = []
  const redriven: Array<string> = []
  const letters = Array.from({ length: count }, (_, i) => letter(i + 1))
  const backend = new Backend(yield* Clock.Clock)
  const list = (after: string | undefined, count: number) =>
    Effect.sync(() => {
      requests.push(`${after} ${count}`)
      const from = after === undefined ? 0 : letters.findIndex(({ id }) => id === after) + 1
      return letters.slice(from, from + count)
    })
  const service: StreamStore.Service = {
    ...backend.service((_, call) => Effect.sync(call)),
    inspect: Effect.succeed({ deadLetters: counted } as never),
    deadLetters: list,
    deadMessages: (_, after, count) => Effect.as(list(after, count), []),
    redrive: (id) =>
      Effect.sync(() => {
        redriven.push(id)
        // A redriven announcement that fails again becomes a new dead letter
        letters.push(letter(letters.length + 1))
        return true
      })
  }
  const store = Layer.succeed(StreamStore.StreamStore, { open: () => Effect.succeed(service) })
  const live = StreamClient.layer({ service: "svc", processName: "a" }).pipe(Layer.provide(store))
  const client = Context.get(yield* Layer.build(live), StreamClient.StreamClient)
  return { client, redriven, requests }
})

it.effect("redriveAll lists dead letters in pages of 100, and redrives each one that existed at the start exactly once", () =>
  Effect.gen(function*() {
    const { client, redriven, requests } = yield* setup(250)
    assert.strictEqual(yield* client.redriveAll(), 250)
    assert.deepStrictEqual(redriven, Array.from({ length: 250 }, (_, i) => `${i + 1}-0`))
    assert.deepStrictEqual(requests, ["undefined 100", "100-0 100", "200-0 50"])
  }).pipe(Effect.scoped))

it.effect("redriveAll stops at its limit without listing another page", () =>
  Effect.gen(function*() {
    const { client, redriven, requests } = yield* setup(250)
    assert.strictEqual(yield* client.redriveAll({ limit: 100 }), 100)
    assert.deepStrictEqual(requests, ["undefined 100"])
    const isEven = ({ id }: DeadLetter) => Number(id.split("-")[0]) % 2 === 0
    redriven.length = 0
    assert.strictEqual(yield* client.redriveAll({ limit: 60, filter: isEven }), 60)
    assert.deepStrictEqual(redriven, Array.from({ length: 60 }, (_, i) => `${2 * (i + 1)}-0`))
  }).pipe(Effect.scoped))

it.effect("redriveAll ends even if other clients removed dead letters after it had counted them", () =>
  Effect.gen(function*() {
    const { client, requests } = yield* setup(0, 30)
    assert.strictEqual(yield* client.redriveAll(), 0)
    assert.deepStrictEqual(requests, ["undefined 30"])
  }).pipe(Effect.scoped))

it.effect("lists of dead letters and dead messages contain up to 100 elements by default", () =>
  Effect.gen(function*() {
    const { client, requests } = yield* setup(250)
    assert.lengthOf(yield* client.deadLetters(), 100)
    yield* client.deadMessages("s1")
    assert.deepStrictEqual(requests, ["undefined 100", "undefined 100"])
  }).pipe(Effect.scoped))
