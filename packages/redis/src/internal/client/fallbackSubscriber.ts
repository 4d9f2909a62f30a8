/**
 * Implements `Subscriber` on top of any provider of Effect's `Redis` service. The stores use it if no `Subscriber` is
 * provided. Each channel needs one of the provider's subscriptions, which usually opens a separate connection. If a
 * subscription fails, this module subscribes again and sends the listeners a `Gap`. The provider does not report
 * reconnects, so waiters poll every two seconds.
 */
import { Subscriber } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import type { Redis } from "./effectRedis.ts"
import * as log from "./log.ts"
import * as noticeQueue from "./noticeQueue.ts"

const retry = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(Schedule.jittered)

const over = (redis: Redis["Service"]): Subscriber["Service"] => ({
  countable: true,
  bound: Duration.seconds(2),
  subscribe: Effect.fnUntraced(function*(channel) {
    const queue = yield* noticeQueue.make
    yield* Effect.addFinalizer(() => Queue.shutdown(queue))
    const forward = (messages: Effect.Success<ReturnType<typeof redis.subscribe>>) =>
      Queue.take(messages).pipe(
        Effect.map(({ message }) => noticeQueue.offer(queue, { _tag: "Message", channel, text: message })),
        Effect.forever
      )
    const renewed = Effect.gen(function*() {
      const messages = yield* redis.subscribe(channel)
      noticeQueue.offer(queue, { _tag: "Gap" })
      return yield* forward(messages)
    })
    const first = yield* redis.subscribe(channel)
    yield* forward(first).pipe(
      Effect.tapError((error) => log.debug("A subscription failed; renewing it", error.cause)),
      Effect.catch(() => Effect.retry(Effect.scoped(renewed), retry)),
      Effect.forkScoped
    )
    return queue
  })
})

/** Returns the `Redis` provider's `Subscriber`, or else one on top of `Redis.subscribe`. */
export const currentSubscriber = (redis: Redis["Service"]): Effect.Effect<Subscriber["Service"]> =>
  Effect.map(Effect.serviceOption(Subscriber), Option.getOrElse(() => over(redis)))
