/**
 * What travels between contenders and Redis, as Schema codecs in both directions.
 *
 * @since 0.1.0
 */
import { FencingToken, type Ownership, Ticket } from "@effect-simba/core/Ownership"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"

const separator = "@@"

/** No leading zeros, so that every text has one reading and every reading one text. */
const millisPattern = /^(0|[1-9]\d{0,14})$/

const ownerIdProblem = (id: string): string | undefined =>
  id === ""
    ? "the owner is empty"
    : id.includes(separator) || id.startsWith("@") || id.endsWith("@")
    ? "the owner contains a separator"
    : undefined

/**
 * An owner's id as others may have written it: any text that cannot be mistaken for a separator.
 *
 * @category schemas
 * @since 0.1.0
 */
export const OwnerId = Schema.String.check(
  Schema.makeFilter((id: string) => ownerIdProblem(id)),
  // Said again for generators of examples, which do not look into filters
  Schema.isMinLength(1)
)

/** A text that is split by hand into fields of `target`, and refused with the reason. */
const text = <T>(
  target: Schema.Codec<T, T>,
  decode: (text: string) => T | string,
  encode: (value: T) => string
): Schema.Codec<T, string> =>
  Schema.String.pipe(Schema.decodeTo(
    target,
    SchemaTransformation.transformEffect({
      decode: (input: string, options) => {
        const result = decode(input)
        return typeof result === "string"
          ? Effect.fail(new SchemaIssue.InvalidValue({ message: result }, input, options))
          : Effect.succeed(result)
      },
      encode: (value: T) => Effect.succeed(encode(value))
    })
  ))

const WireOwnership = Schema.TaggedUnion({
  Free: {},
  Held: {
    owner: OwnerId,
    remaining: Schema.optionalKey(Schema.Duration.check(
      Schema.makeFilter((duration: Duration.Duration) =>
        millisPattern.test(String(Duration.toMillis(duration))) || "not a whole number of milliseconds"
      )
    ))
  }
})

/**
 * Who owns a mutex: `<owner id>@@<remaining milliseconds>`, with `-1` where it is held without end, and `@@` alone
 * where nobody does. It is the result of Simba's scripts too.
 *
 * @category schemas
 * @since 0.1.0
 */
export const OwnershipText: Schema.Codec<Ownership, string> = text(
  WireOwnership,
  (input) => {
    if (input === separator) return { _tag: "Free" as const }
    const at = input.lastIndexOf(separator)
    if (at === -1) return "expected <owner>@@<milliseconds>"
    const owner = input.slice(0, at)
    const millis = input.slice(at + separator.length)
    const problem = ownerIdProblem(owner)
    if (problem !== undefined) return problem
    if (millis === "-1") return { _tag: "Held" as const, owner }
    return millisPattern.test(millis)
      ? { _tag: "Held" as const, owner, remaining: Duration.millis(Number(millis)) }
      : "expected a whole number of milliseconds after @@"
  },
  (ownership) =>
    ownership._tag === "Free"
      ? separator
      : `${ownership.owner}${separator}${
        ownership.remaining === undefined ? "-1" : Duration.toMillis(ownership.remaining)
      }`
)

/**
 * The mutex channel: `acquired@@<owner id>`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const MutexMessage = text(
  Schema.TaggedUnion({ Acquired: { owner: OwnerId } }),
  (input) => {
    if (!input.startsWith("acquired@@")) return "expected acquired@@<owner>"
    const owner = input.slice("acquired@@".length)
    return ownerIdProblem(owner) ?? { _tag: "Acquired" as const, owner }
  },
  (message) => `acquired${separator}${message.owner}`
)

/**
 * @category models
 * @since 0.1.0
 */
export type MutexMessage = typeof MutexMessage.Type

const Millis = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 999_999_999_999_999 }))

/**
 * A contender's channel: `released@@<old owner id>` (it is your turn), and for ours `look@@<milliseconds>` (look again
 * after so long).
 *
 * @category schemas
 * @since 0.1.0
 */
export const ContenderMessage = text(
  Schema.TaggedUnion({ Released: { owner: OwnerId }, Look: { millis: Millis } }),
  (input) => {
    if (input.startsWith("released@@")) {
      const owner = input.slice("released@@".length)
      return ownerIdProblem(owner) ?? { _tag: "Released" as const, owner }
    }
    if (!input.startsWith("look@@")) return "expected released@@<owner> or look@@<milliseconds>"
    const millis = input.slice("look@@".length)
    return millisPattern.test(millis)
      ? { _tag: "Look" as const, millis: Number(millis) }
      : "expected a whole number of milliseconds after look@@"
  },
  (message) =>
    message._tag === "Released" ? `released${separator}${message.owner}` : `look${separator}${message.millis}`
)

/**
 * @category models
 * @since 0.1.0
 */
export type ContenderMessage = typeof ContenderMessage.Type

const digits = Schema.String.check(Schema.isPattern(/^(0|[1-9]\d{0,15})$/))

const Count = digits.pipe(Schema.decodeTo(
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  SchemaTransformation.transform({ decode: (text) => Number(text), encode: (count) => String(count) })
))

const Token = digits.pipe(Schema.decodeTo(
  Schema.toType(FencingToken),
  SchemaTransformation.transform({ decode: (text) => Number(text) as FencingToken, encode: (token) => String(token) })
))

/** An absent field is the empty text: a Lua array ends at its first nil. */
const orNothing = <T, E extends string>(codec: Schema.Codec<T, E>) => Schema.Union([Schema.Literal(""), codec])

/**
 * The reply of the acquire script: ownership, token, ticket, position among ours, and `1` where contenders of another
 * implementation take part.
 *
 * @category schemas
 * @since 0.1.0
 */
export const AcquireReply = Schema.Tuple([
  OwnershipText,
  orNothing(Token),
  orNothing(Schema.toType(Ticket)),
  Count,
  Schema.Literals(["0", "1"])
])

/**
 * The reply of the guard script: for each lease that was not renewed its index, counted from 1, and either the
 * ownership it found or the error it met.
 *
 * @category schemas
 * @since 0.1.0
 */
export const GuardReply = Schema.Array(
  Schema.Union([
    Schema.Tuple([Schema.Int, Schema.Literal("owner"), OwnershipText]),
    Schema.Tuple([Schema.Int, Schema.Literal("error"), Schema.String])
  ])
)

/**
 * The reply of the inspect script.
 *
 * @category schemas
 * @since 0.1.0
 */
export const InspectReply = Schema.Tuple([
  OwnershipText,
  orNothing(Token),
  Count,
  Schema.Array(Schema.Tuple([Schema.String, Count]))
])

/**
 * The reply of the tick script: whether the caller is the first, and the milliseconds until the next period.
 *
 * @category schemas
 * @since 0.1.0
 */
export const TickReply = Schema.Tuple([Schema.Literals(["0", "1"]), Count])

/**
 * The channel of a layer: `forced@@<wire id>`, the lease of that id was taken away by force.
 *
 * @category schemas
 * @since 0.1.0
 */
export const InboxMessage = text(
  Schema.TaggedUnion({ Forced: { id: OwnerId } }),
  (input) => {
    if (!input.startsWith("forced@@")) return "expected forced@@<wire id>"
    const id = input.slice("forced@@".length)
    return ownerIdProblem(id) ?? { _tag: "Forced" as const, id }
  },
  (message) => `forced${separator}${message.id}`
)

/**
 * @category models
 * @since 0.1.0
 */
export type InboxMessage = typeof InboxMessage.Type
