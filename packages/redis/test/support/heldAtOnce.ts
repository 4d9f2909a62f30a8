/**
 * A scenario for fake and real servers: simultaneous requests for 2,000 leases share calls, and each gets its own
 * result.
 */
import { StreamName } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, Epoch, type Ownership, ServiceName, StreamStore } from "@effect-simba/core/streams/StreamStore"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import { assert } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { freshName } from "./harness.ts"

const size = 2000
const lease = Duration.seconds(60)

export const heldAtOnce = Effect.suspend(() => {
  let calls = 0
  const counted = Layer.effect(
    Redis,
    Effect.map(Redis, (redis) =>
      Redis.of({
        ...redis,
        send: (command, ...args) => {
          if (command.startsWith("EVAL")) calls++
          return redis.send(command, ...args)
        }
      }))
  )
  /** Concurrently sends a request for each item. Returns the replies and the number of script calls. */
  const ofAll = <A, B, E>(items: ReadonlyArray<A>, request: (item: A) => Effect.Effect<B, E>) =>
    Effect.suspend(() => {
      calls = 0
      return Effect.map(
        Effect.forEach(items, request, { concurrency: "unbounded" }),
        (replies) => ({ replies, calls })
      )
    })
  const each = <A>(reply: A) => Array.from({ length: size }, () => reply)

  return Effect.gen(function*() {
    const name = ServiceName.make(freshName("at-once"))
    const service = yield* (yield* StreamStore).open(name)
    const [a, b] = [ConsumerName.make("simba-consumer-a"), ConsumerName.make("simba-consumer-b")]
    const session = "s00000000000"
    let epochs = 0
    const own = Effect.fnUntraced(
      function*(announced: ReadonlyArray<Pick<Ownership, "entry" | "stream">>, failures: number) {
        const requests = announced.map(({ entry, stream }) => ({
          stream,
          entry,
          consumer: a,
          epoch: Epoch.make(`${session}.${(++epochs).toString(36)}`),
          lease,
          minIdle: Duration.zero,
          maxFailures: 10
        }))
        return (yield* service.take(requests)).map((result, i): Ownership => {
          assert.deepInclude(result, { _tag: "Taken", failures })
          return { ...requests[i]!, token: result._tag === "Taken" ? result.token : 0 as never }
        })
      }
    )

    yield* service.prepare
    const streams = Array.from({ length: size }, (_, i) => StreamName.make(`${name}:s${i}`))
    const announced = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
    yield* service.read({ consumer: a, count: size, block: Duration.millis(10) })
    const held = yield* own(announced.map(({ entry }, i) => ({ stream: streams[i]!, entry })), 0)

    // Repeat the requests as if the first replies were lost. No failure is counted twice
    for (let i = 0; i < 2; i++) {
      const { calls, replies } = yield* ofAll(held, (held) => service.fail(held, { attempt: 1 }))
      assert.deepStrictEqual(replies.map((reply) => reply === "NotOwner" ? reply : reply.count), each(1))
      assert.strictEqual(calls, size / 200)
    }

    const to = { consumer: b, session }
    const stale = { ...held[7]!, epoch: Epoch.make(`${session}.zzz`) }
    const abandoned = yield* ofAll(
      [...held.slice(0, 7), stale, ...held.slice(8)],
      (held) => service.handOver(held, to, lease)
    )
    assert.deepStrictEqual(abandoned.replies, each("HandedOver").with(7, "NotOwner"))
    assert.strictEqual(abandoned.calls, size / 200)
    assert.strictEqual(yield* service.handOver(held[7]!, to, lease), "HandedOver")

    const adopted = yield* ofAll([to], ({ consumer, session }) => service.handedOver(consumer, session))
    const received = adopted.replies[0]!
    assert.deepStrictEqual(received.map(({ stream }) => stream).sort(), [...streams].sort())
    assert.strictEqual(adopted.calls, 1 + size / 200)
    assert.isTrue((yield* service.renew(received, lease)).every(({ _tag }) => _tag === "Renewed"))

    const released = yield* ofAll(received, service.release)
    assert.deepStrictEqual(released.replies, each("Released"))
    assert.strictEqual(released.calls, size / 200)

    const repeated = yield* own(received, 1)
    const dead = yield* ofAll(repeated, (held) => service.deadLetter(held, "too many"))
    assert.deepStrictEqual(dead.replies, each("DeadLettered"))
    assert.strictEqual(dead.calls, size / 200)
    const state = yield* service.inspect
    assert.deepInclude(state, { announced: 0, pending: 0, deadLetters: size })
  }).pipe(Effect.scoped, Effect.provide(RedisStreams.layerStore.pipe(Layer.provide(counted))))
})
