/**
 * A model of a Simba contender (3.1.1 or newer) on Redis, for testing mixed fleets.
 *
 * It follows the original's wire protocol, including its weaknesses. Tickets are in whole seconds. A contender's queue
 * entry remains after it has acquired the mutex. A release notifies a single waiter, dead or alive. A contender gives
 * up its lease on the first failed renewal. It may poll up to a second after the owner key has expired.
 *
 * @since 0.1.0
 */
import { Subscriber } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Redis from "./internal/client/effectRedis.ts"

const acquireScript = Redis.script((key: string, id: string, millis: number) => [key, id, millis], {
  numberOfKeys: 1,
  lua: `
local key, id = KEYS[1], ARGV[1]
if redis.call('SET', key, id, 'NX', 'PX', ARGV[2]) then
  redis.call('PUBLISH', key, 'acquired@@' .. id)
  return id .. '@@' .. ARGV[2]
end
redis.call('ZADD', key .. ':contender', 'NX', redis.call('TIME')[1], id)
return redis.call('GET', key) .. '@@' .. redis.call('PTTL', key)
`
}).withReturnType<string>()

const guardScript = Redis.script((key: string, id: string, millis: number) => [key, id, millis], {
  numberOfKeys: 1,
  lua: `
local owner = redis.call('GET', KEYS[1])
if not owner then
  return '@@'
end
if owner == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return owner .. '@@' .. redis.call('PTTL', KEYS[1])
`
}).withReturnType<string>()

const releaseScript = Redis.script((key: string, id: string) => [key, id], {
  numberOfKeys: 1,
  lua: `
local key, id = KEYS[1], ARGV[1]
local queue = key .. ':contender'
if redis.call('GET', key) ~= id then
  redis.call('ZREM', queue, id)
  return 0
end
redis.call('DEL', key)
local head = redis.call('ZRANGE', queue, 0, 0)[1]
if head then
  redis.call('ZREM', queue, head)
  redis.call('PUBLISH', key .. ':' .. head, 'released@@' .. id)
end
return 1
`
}).withReturnType<number>()

type Options<E, R> = {
  readonly mutex: string
  /** The contender's id, which never changes, such as `7:4711@host`. */
  readonly id: string
  /** The `ttl` configured in Simba. Default: 10 seconds. */
  readonly ttl?: Duration.Input | undefined
  /** The `transition` configured in Simba. Default: 6 seconds. */
  readonly transition?: Duration.Input | undefined
  /** How long the contender pauses after leading before it contends again. Default: 0. */
  readonly rest?: Duration.Input | undefined
  /** The work to do while leading. When it ends, the contender releases the mutex. */
  readonly lead: Effect.Effect<void, E, R>
}

const parse = (reply: string): { readonly owner: string; readonly millis: number } => {
  const at = reply.lastIndexOf("@@")
  return { owner: reply.slice(0, Math.max(0, at)), millis: Number(reply.slice(at + 2) || "0") }
}

/**
 * Contends until the effect is interrupted. If it is interrupted while leading, it releases the mutex.
 *
 * **Example** (A mixed fleet)
 *
 * ```ts
 * import { TestRedis } from "@effect-simba/testkit"
 * import * as SimbaContender from "@effect-simba/testkit/SimbaContender"
 * import { Effect } from "effect"
 *
 * const contender = SimbaContender.contend({
 *   mutex: "jobs",
 *   id: "7:4711@host",
 *   ttl: "2 seconds",
 *   rest: "1 second",
 *   lead: Effect.sleep("5 seconds")
 * })
 *
 * const program = Effect.forkScoped(contender).pipe(Effect.provide(TestRedis.layer()))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const contend = Effect.fnUntraced(function*<E, R>(options: Options<E, R>) {
  const redis = yield* Redis.Redis
  const subscriber = yield* Subscriber
  const key = `simba:{${options.mutex}}`
  const ttl = Duration.fromInputUnsafe(options.ttl ?? "10 seconds")
  const lease = Duration.toMillis(ttl) + Duration.toMillis(options.transition ?? "6 seconds")
  const acquire = redis.eval(acquireScript)(key, options.id, lease)
  const guard = redis.eval(guardScript)(key, options.id, lease)
  const release = redis.eval(releaseScript)(key, options.id)
  const released = yield* subscriber.subscribe(`${key}:${options.id}`)

  /** Completes when a renewal fails or returns another owner. */
  const holding = Effect.gen(function*() {
    for (;;) {
      yield* Effect.sleep(ttl)
      const reply = yield* Effect.option(guard)
      if (Option.isNone(reply) || parse(reply.value).owner !== options.id) return
    }
  })

  const leading = Effect.ensuring(
    Effect.raceFirst(options.lead, holding),
    Effect.ignore(Effect.timeout(release, "1 second"))
  )

  for (;;) {
    const reply = yield* Effect.option(acquire)
    const { millis, owner } = Option.isSome(reply) ? parse(reply.value) : { owner: "", millis: Duration.toMillis(ttl) }
    if (owner === options.id) {
      yield* leading
      yield* Effect.sleep(options.rest ?? 0)
      continue
    }
    const late = yield* Random.nextBetween(-200, 1000)
    // Simba reacts only to the message for its own turn
    yield* Effect.timeoutOption(
      Effect.repeat(Queue.take(released), {
        until: (notice) => notice._tag === "Message" && notice.text.startsWith("released@@")
      }),
      Duration.millis(Math.max(0, millis + late))
    )
  }
}, Effect.scoped)
