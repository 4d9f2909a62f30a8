/**
 * Names and ids: what is allowed, and who made them.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as host from "./internal/processIdentity.ts"
import { InvalidName } from "./SimbaError.ts"

/** @internal */
export const mutexProblem = (name: string): string | undefined =>
  name.trim() === ""
    ? "it is blank"
    : name.startsWith("}")
    ? "it starts with \"}\", which would empty the hash tag of its keys"
    : name.includes("}:tick:")
    ? "it contains \"}:tick:\", which would make its key that of a job"
    : undefined

const contenderProblem = (name: string): string | undefined =>
  name.trim() === ""
    ? "it is blank"
    : name.includes("@@")
    ? "it contains \"@@\", which separates fields on the wire"
    : name.startsWith("@") || name.endsWith("@")
    ? "it starts or ends with \"@\", which would blur a separator on the wire"
    : undefined

/**
 * The name of a mutex: not blank, not starting with `}`, without `}:tick:`.
 *
 * **Example** (A name from outside)
 *
 * ```ts
 * import { MutexName } from "@effect-simba/core"
 * import { Schema } from "effect"
 *
 * const Request = Schema.Struct({ mutex: MutexName.MutexName })
 *
 * const decode = Schema.decodeUnknownEffect(Request)
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const MutexName = Schema.String.check(
  Schema.makeFilter((name: string) => mutexProblem(name), { expected: "a mutex name" }),
  // Said again for generators of examples, which do not look into filters
  Schema.isMinLength(1)
).pipe(Schema.brand("@effect-simba/MutexName"))

/**
 * @category models
 * @since 0.1.0
 */
export type MutexName = typeof MutexName.Type

/**
 * The name of a contender: not blank, without `@@`, and without `@` at either end.
 *
 * **Example** (A name from the environment)
 *
 * ```ts
 * import { Mutex, MutexName } from "@effect-simba/core"
 * import { Config, Effect, Layer } from "effect"
 *
 * const MutexLive = Layer.unwrap(
 *   Effect.map(Config.schema(MutexName.ContenderName, "POD_NAME"), (contender) => Mutex.layer({ contender }))
 * )
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const ContenderName = Schema.String.check(
  Schema.makeFilter((name: string) => contenderProblem(name), { expected: "a contender name" }),
  // Said again for generators of examples, which do not look into filters
  Schema.isMinLength(1)
).pipe(Schema.brand("@effect-simba/ContenderName"))

/**
 * @category models
 * @since 0.1.0
 */
export type ContenderName = typeof ContenderName.Type

/**
 * What a contender is called in the backend: `<counter>-<random>:<contender name>`, new for each attempt (one wait and
 * the lease it ends in) and never used twice. That is what makes undoing an attempt of unknown outcome safe.
 *
 * **Example** (Whether an owner is one of ours)
 *
 * ```ts
 * import { Mutex, MutexName } from "@effect-simba/core"
 * import { Effect, Schema } from "effect"
 *
 * const isOurs = Schema.is(MutexName.ContenderId)
 *
 * const program = Effect.map(
 *   Mutex.inspect("invoices"),
 *   ({ ownership }) => ownership._tag === "Held" && isOurs(ownership.owner)
 * )
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const ContenderId = Schema.String.check(
  Schema.isPattern(/^\d+-[0-9a-z]{12}:./),
  Schema.makeFilter((id: string) => contenderProblem(id))
).pipe(Schema.brand("@effect-simba/ContenderId"))

/**
 * @category models
 * @since 0.1.0
 */
export type ContenderId = typeof ContenderId.Type

/**
 * The part of a wire id that all ids of one layer share: where that layer can be told something. Empty for an id that is
 * not one of ours.
 *
 * **Example** (Waiters by the process that they belong to)
 *
 * ```ts
 * import { Mutex, MutexName } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const processes = Effect.map(
 *   Mutex.inspect("invoices"),
 *   ({ waiters }) => new Set(waiters.map(({ id }) => MutexName.inboxOf(id)))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const inboxOf = (id: string): string => /^\d+-([0-9a-z]{12}):/.exec(id)?.[1] ?? ""

/**
 * Checks the name of a mutex; fails with `InvalidName` that says what is wrong with it.
 *
 * **Example** (Refusing a request before it waits)
 *
 * ```ts
 * import { MutexName } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const validate = (name: string) =>
 *   Effect.mapError(MutexName.mutexName(name), ({ problem }) => `not a name for a job: ${problem}`)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const mutexName = (name: string): Effect.Effect<MutexName, InvalidName> => {
  const problem = mutexProblem(name)
  return problem === undefined
    ? Effect.succeed(name as MutexName)
    : Effect.fail(new InvalidName({ kind: "mutex", value: name, problem }))
}

/**
 * Checks the name of a contender; fails with `InvalidName` that says what is wrong with it.
 *
 * **Example** (A name that says what the process is for)
 *
 * ```ts
 * import { Mutex, MutexName } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const mutexLive = (role: string) =>
 *   Layer.unwrap(Effect.map(MutexName.contenderName(`billing-${role}`), (contender) => Mutex.layer({ contender })))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const contenderName = (name: string): Effect.Effect<ContenderName, InvalidName> => {
  const problem = contenderProblem(name)
  return problem === undefined
    ? Effect.succeed(name as ContenderName)
    : Effect.fail(new InvalidName({ kind: "contender", value: name, problem }))
}

/**
 * `<pid>@<host>`: tells an operator where to look. The default.
 *
 * **Example** (The same name in the logs)
 *
 * ```ts
 * import { MutexName } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const annotated = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
 *   Effect.flatMap(MutexName.contenderByHost, (contender) => Effect.annotateLogs(effect, { contender }))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const contenderByHost: Effect.Effect<ContenderName> = Effect.sync(() =>
  `${host.pid()}@${host.name()}` as ContenderName
)

/**
 * A random UUID: for contenders whose host must not show.
 *
 * **Example** (A contender that does not tell its host)
 *
 * ```ts
 * import { Mutex, MutexName } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const MutexLive = Layer.unwrap(Effect.map(MutexName.contenderByUuid, (contender) => Mutex.layer({ contender })))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const contenderByUuid: Effect.Effect<ContenderName> = Effect.map(
  Effect.all(Array.from({ length: 8 }, () => Random.nextIntBetween(0, 0x10000))),
  (words) => {
    const [a, b, c, d, e, f, g, h] = words.map((word) => word.toString(16).padStart(4, "0")) as [
      string,
      ...Array<string>
    ]
    return `${a}${b}-${c}-4${d!.slice(1)}-a${e!.slice(1)}-${f}${g}${h}` as ContenderName
  }
)
