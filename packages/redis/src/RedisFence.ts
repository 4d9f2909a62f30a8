/**
 * Fenced writes: Redis rejects writes from former owners of a mutex.
 *
 * An owner may be paused past its deadline (a stopped process, a long garbage collection, a suspended machine), and
 * write when it resumes, after somebody else has acquired the mutex. The owner cannot prevent that, but the resource
 * can, because each grant has a larger token than the one before. A resource that remembers the largest token can
 * reject smaller ones: once the new owner has written, no former owner can.
 *
 * Redis keeps the token in a key in the resource's Cluster slot for seven days after its last use. Protect related data
 * with a single resource and a single mutex, because tokens from different mutexes cannot be compared.
 *
 * **Example** (Rejecting a write from a former owner)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { RedisFence } from "@effect-simba/redis"
 * import { Effect } from "effect"
 *
 * const program = Mutex.withLock("report")((lease) => RedisFence.set(lease, "report:latest", "...")).pipe(
 *   Effect.catchTag("StaleToken", (error) => Effect.logError(error.message))
 * )
 * ```
 *
 * @since 0.1.0
 */
import { type Bearer, FencingToken, resourceOf } from "@effect-simba/core/FencingToken"
import { InvalidConfig, type ProtocolError, StaleToken, type StoreError } from "@effect-simba/core/SimbaError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Redis from "./internal/client/effectRedis.ts"
import { fromRedis } from "./internal/client/errors.ts"
import { malformed } from "./internal/client/malformedInput.ts"
import { evaluate } from "./internal/client/script.ts"
import * as RedisKeys from "./internal/mutex/keys.ts"

/** How long a token is kept after its last use. */
const keepMillis = 7 * 24 * 60 * 60 * 1000

/**
 * KEYS: the largest token's key, then the snippet's keys. ARGV: the caller's token, then the snippet's arguments.
 * Tokens have up to 16 digits, and Lua numbers represent them exactly.
 */
const fenced = (snippet: string) => /* lua */ `
local largest = redis.call('GET', KEYS[1])
if largest and not tonumber(largest) then
  return { 'unreadable', largest }
end
if largest and tonumber(largest) > tonumber(ARGV[1]) then
  return { 'stale', largest }
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', '${keepMillis}')
local function snippet(KEYS, ARGV)
${snippet}
end
local rest = { {}, {} }
for i, all in ipairs({ KEYS, ARGV }) do
  for k = 2, #all do rest[i][k - 1] = all[k] end
end
local result = snippet(rest[1], rest[2])
if type(result) == 'table' and result.err then
  return result
end
return { 'done', result or false }
`

/**
 * A fenced Lua snippet.
 *
 * **Gotchas**
 *
 * Create it once, at module level, because Redis caches the text of every script.
 *
 * @see {@link script}
 * @category models
 * @since 0.1.0
 */
export interface Script<Params extends ReadonlyArray<unknown>> {
  readonly fenced: Redis.Script<{
    readonly params: readonly [fence: string, token: FencingToken, ...params: Params]
    readonly result: unknown
  }>
}

/**
 * Fences a Lua snippet.
 *
 * **Details**
 *
 * As in Effect's `Redis.script`, `params` turns a call's parameters into a list. The first `numberOfKeys` elements
 * become the snippet's KEYS, and the rest become its ARGV. Both are numbered from 1. The snippet must return its
 * result.
 *
 * **Gotchas**
 *
 * The snippet is embedded in a larger script, so line numbers in errors are offset. On a Cluster, use only keys in the
 * resource's slot.
 *
 * **Example** (A counter that only the owner of a mutex can increment)
 *
 * ```ts
 * import type { Lease } from "@effect-simba/core"
 * import { RedisFence } from "@effect-simba/redis"
 *
 * const advance: RedisFence.Script<[key: string, by: number]> = RedisFence.script((key, by) => [key, by], {
 *   numberOfKeys: 1,
 *   lua: `return redis.call('INCRBY', KEYS[1], ARGV[1])`
 * })
 *
 * const next = (lease: Lease.Lease) => RedisFence.run(advance, lease)("{invoices}:last", 1)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const script = <Params extends ReadonlyArray<unknown>>(
  params: (...params: Params) => ReadonlyArray<unknown>,
  options: { readonly lua: string; readonly numberOfKeys: number | ((...params: Params) => number) }
): Script<Params> => {
  const { lua, numberOfKeys } = Redis.script(params, options)
  return {
    fenced: Redis.script(
      (fence: string, token: FencingToken, ...args: Params) => {
        const all = params(...args)
        const keys = numberOfKeys(...args)
        return [fence, ...all.slice(0, keys), token, ...all.slice(keys)]
      },
      { lua: fenced(lua), numberOfKeys: (_fence, _token, ...args) => 1 + numberOfKeys(...args) }
    ).withReturnType<unknown>()
  }
}

const isToken = Schema.is(FencingToken)

/**
 * Runs a fenced snippet atomically on the server, unless the resource has already accepted a larger token.
 *
 * **Details**
 *
 * The token is recorded before the snippet runs, so former owners are locked out even if the snippet fails. The result
 * is the raw Redis reply, which you need to decode.
 *
 * **Example** (A list that only the owner of a mutex can append to)
 *
 * ```ts
 * import type { Lease } from "@effect-simba/core"
 * import { RedisFence } from "@effect-simba/redis"
 *
 * const append: RedisFence.Script<[key: string, line: string]> = RedisFence.script((key, line) => [key, line], {
 *   numberOfKeys: 1,
 *   lua: `return redis.call('RPUSH', KEYS[1], ARGV[1])`
 * })
 *
 * const write = (line: string, lease: Lease.Lease) => RedisFence.run(append, lease)("{ledger}:lines", line)
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const run = <Params extends ReadonlyArray<unknown>>(
  script: Script<Params>,
  bearer: Bearer
) =>
(...params: Params): Effect.Effect<unknown, StaleToken | StoreError, Redis.Redis> =>
  Effect.flatMap(Redis.Redis, (redis) => {
    const { token } = bearer
    const resource = resourceOf(bearer)
    const fence = RedisKeys.largestToken(resource)
    return evaluate(redis, script.fenced)(fence, token, ...params).pipe(
      Effect.mapError(fromRedis("fenced script")),
      Effect.flatMap((reply): Effect.Effect<unknown, StaleToken | ProtocolError> => {
        const [kind, what] = Array.isArray(reply) ? reply as ReadonlyArray<unknown> : []
        if (kind === "done") return Effect.succeed(what)
        const largest = Number(what)
        if (kind === "stale" && isToken(largest)) return Effect.fail(new StaleToken({ resource, token, largest }))
        const where = `the token that "${resource}" has seen`
        return Effect.fail(malformed(where, kind === undefined ? reply : what, "it is not a fencing token"))
      })
    )
  })

const nothing = script(() => [], { numberOfKeys: 0, lua: "return nil" })

/**
 * Records the lease's token as the resource's largest. The resource then rejects all smaller tokens.
 *
 * **When to use**
 *
 * If you read before you write, call this before the first read under each lease. From then on, no former owner can
 * change the data.
 *
 * **Details**
 *
 * Writes only the token. Fails with `StaleToken` if the resource has already accepted a larger one.
 *
 * **Example** (A read that stays valid)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { RedisFence } from "@effect-simba/redis"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const program = Mutex.withLock("balance")((lease) =>
 *   Effect.gen(function*() {
 *     const redis = yield* Redis
 *     yield* RedisFence.raise(lease)
 *     const balance = Number(yield* redis.send<string | null>("GET", "balance"))
 *     yield* RedisFence.set(lease, "balance", String(balance + 1))
 *   })
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const raise = (bearer: Bearer): Effect.Effect<void, StaleToken | StoreError, Redis.Redis> =>
  Effect.asVoid(run(nothing, bearer)())

const write = script((key: string, value: string, millis: number | "") => [key, value, millis], {
  numberOfKeys: 1,
  lua: `
if ARGV[2] == '' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end`
})

/**
 * Sets a key, like `SET`, unless the resource has already accepted a larger token.
 *
 * **Details**
 *
 * You can write repeatedly with the same token.
 *
 * **Gotchas**
 *
 * On a Cluster the key must be in the resource's slot, such as `{rates}:latest` for the mutex `rates`.
 *
 * **Example** (A value that expires)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { RedisFence } from "@effect-simba/redis"
 *
 * const program = Mutex.withLock("rates")((lease) =>
 *   RedisFence.set(lease, "rates:latest", "1.07", { ttl: "10 minutes" })
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const set = (
  bearer: Bearer,
  key: string,
  value: string,
  options?: {
    /** The time until the key expires, rounded up to whole milliseconds. By default the key never expires. */
    readonly ttl?: Duration.Input | undefined
  }
): Effect.Effect<void, StaleToken | StoreError | InvalidConfig, Redis.Redis> => {
  if (options?.ttl === undefined) return Effect.asVoid(run(write, bearer)(key, value, ""))
  const ttl = Duration.fromInput(options.ttl)
  const millis = ttl._tag === "Some" ? Math.ceil(Duration.toMillis(ttl.value)) : NaN
  return Number.isSafeInteger(millis) && millis > 0
    ? Effect.asVoid(run(write, bearer)(key, value, millis))
    : Effect.fail(new InvalidConfig({ option: "ttl", problem: "it must be finite and at least 1 millisecond" }))
}
