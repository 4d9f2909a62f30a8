/** Helpers for tests that call single data-stream scripts on the fake Redis. */
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import { StreamName } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, Epoch, type Ownership, ServiceName, StreamStore } from "@effect-simba/core/streams/StreamStore"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import * as FakeRedis from "@effect-simba/testkit/FakeRedis"
import * as TestRedis from "@effect-simba/testkit/TestRedis"
import { assert } from "@effect/vitest"
import { Duration, Effect, Layer, type Scope } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as StreamKeys from "../../src/streams/internal/keys.ts"

export const lease = Duration.seconds(2)
export const name = ServiceName.make("{orders}")
export const input = StreamKeys.input(name)
export const group = StreamKeys.group(name)
export const streamOf = (label: string) => StreamName.make(`{orders}:${label}`)
export const a = ConsumerName.make("simba-consumer-a")
export const b = ConsumerName.make("simba-consumer-b")

let count = 0
export const epoch = () => Epoch.make(`s00000000000.${(++count).toString(36)}`)

export const layer = RedisStreams.layerStore.pipe(
  Layer.provideMerge(TestRedis.layer({ expiryDelay: ["1 second", "1 second"] }))
)
export const onFake = <A, E>(
  effect: Effect.Effect<A, E, FakeRedis.FakeRedis | Redis | StreamStore | Scope.Scope>
) => Effect.provide(effect, layer)

const request = (stream: StreamName, entry: EntryId, consumer = a, minIdle = Duration.zero) => ({
  stream,
  entry,
  consumer,
  epoch: epoch(),
  lease,
  minIdle,
  maxFailures: 10
})

export const setup = Effect.fnUntraced(function*(options?: { readonly enableEvents?: boolean }) {
  const { open } = yield* StreamStore
  const service = yield* open(name, options)
  yield* service.prepare
  const { send } = yield* Redis
  const server = yield* FakeRedis.FakeRedis
  const take = Effect.fnUntraced(function*(stream: StreamName, entry: EntryId, consumer = a, minIdle = Duration.zero) {
    const asked = request(stream, entry, consumer, minIdle)
    const [result] = yield* service.take([asked])
    return { request: asked, result: result! }
  })
  const read = (consumer = a) => service.read({ consumer, count: 10, block: Duration.millis(1) })
  return {
    service,
    server,
    send,
    ask: (stream: StreamName, entry: EntryId, consumer = a) =>
      Effect.map(take(stream, entry, consumer), ({ result }) => result),
    own: Effect.fnUntraced(function*(label: string, consumer = a) {
      const stream = streamOf(label)
      const [reply] = yield* service.announce([{ stream, info: {} }])
      yield* service.read({ consumer, count: 1, block: Duration.millis(1) })
      const { request, result } = yield* take(stream, reply!.entry, consumer)
      assert.strictEqual(result._tag, "Taken")
      const { entry, epoch } = request
      return { stream, entry, epoch, consumer, token: result._tag === "Taken" ? result.token : NaN } as Ownership
    }),
    /**
     * Announces `count` data streams and delivers their entries to consumer `a`. Returns `a`'s requests to take them.
     */
    announceMany: Effect.fnUntraced(function*(count: number) {
      const streams = Array.from({ length: count }, (_, i) => streamOf(String(i)))
      const entries = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
      yield* service.read({ consumer: a, count, block: Duration.millis(1) })
      return streams.map((stream, i) => request(stream, entries[i]!.entry))
    }),
    pending: Effect.map(
      service.pending({ minIdle: Duration.zero, count: 100 }),
      ({ entries }) => entries.map(({ content }) => content.entry)
    ),
    read,
    /** Takes an announcement's next round. */
    ownNext: Effect.fnUntraced(function*({ consumer, stream }: Ownership) {
      const [round] = yield* read()
      const { request: { entry, epoch }, result } = yield* take(stream, round!.entry)
      assert(result._tag === "Taken")
      return { stream, entry, epoch, consumer, token: result.token }
    }),
    xpending: send<ReadonlyArray<ReadonlyArray<unknown>>>("XPENDING", input, group, "-", "+", "100"),
    scriptCalls: Effect.map(server.trace, (trace) => trace.filter(({ args }) => args[0] === "EVALSHA").length)
  }
})

export const keysOf = ({ entry, stream }: Ownership) => ({
  entryLease: StreamKeys.entryLease(stream, entry),
  streamLease: StreamKeys.streamLease(stream)
})
