/**
 * `Subscriber` over any provider of Effect's `Redis` service, for providers other than `IoRedis`.
 *
 * @since 0.1.0
 */
import { type Notice, Subscriber } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import { Redis } from "./internal/client/effectRedis.ts"
import * as log from "./internal/client/log.ts"

const capacity = 256

const retry = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(Schedule.jittered)

/**
 * Provides `Subscriber` using the current `Redis`.
 *
 * **Details**
 *
 * Each channel takes a subscription of the provider, which for most means a connection: one for all waiters of a layer
 * of mutexes, one for each observer, and one for each waiter that shares a mutex with contenders of another
 * implementation. A subscription that fails is made again, with a gap.
 *
 * **Gotchas**
 *
 * Reconnects that the provider hides cannot be seen, so waiters look every 2 seconds.
 *
 * **Example** (Mutexes on a provider of `Redis` that has no subscriber of its own)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { RedisMutexStore, RedisSubscriber } from "@effect-simba/redis"
 * import { Layer } from "effect"
 * import type { Redis } from "effect/persistence/Redis"
 *
 * const mutexOn = <E>(redis: Layer.Layer<Redis, E>) =>
 *   Mutex.layer().pipe(
 *     Layer.provide(RedisMutexStore.layer),
 *     Layer.provide(RedisSubscriber.layer),
 *     Layer.provide(redis)
 *   )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Subscriber, never, Redis> = Layer.effect(
  Subscriber,
  Effect.map(Redis, (redis) => ({
    countable: true,
    bound: Duration.seconds(2),
    subscribe: Effect.fnUntraced(function*(channel) {
      const queue = yield* Queue.sliding<Notice>(capacity)
      yield* Effect.addFinalizer(() => Queue.shutdown(queue))
      const forward = (messages: Effect.Success<ReturnType<typeof redis.subscribe>>) =>
        Queue.take(messages).pipe(
          Effect.flatMap(({ message }) => Queue.offer(queue, { _tag: "Message", channel, text: message })),
          Effect.forever
        )
      const again = Effect.gen(function*() {
        const messages = yield* redis.subscribe(channel)
        yield* Queue.offer(queue, { _tag: "Gap" })
        return yield* forward(messages)
      })
      const first = yield* redis.subscribe(channel)
      yield* forward(first).pipe(
        Effect.tapError((error) => log.debug("A subscription failed and is made again", error.cause)),
        Effect.catch(() => Effect.retry(Effect.scoped(again), retry)),
        Effect.forkScoped
      )
      return queue
    })
  }))
)
