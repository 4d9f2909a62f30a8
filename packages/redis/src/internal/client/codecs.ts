/** Codecs shared by mutexes and streams. */
import { FencingToken } from "@effect-simba/core/FencingToken"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"

/**
 * Separates fields in stored values, replies and messages. The Lua scripts use the same separator. A name or an id must
 * not contain it, unless it is the last field.
 */
export const separator = "@@"

/** A codec for text. `decode` splits the text into the fields of `target`, or returns the problem as a string. */
export const text = <T, E extends object>(
  target: Schema.Codec<T, E>,
  decode: (text: string) => E | string,
  encode: (value: E) => string
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
      encode: (value: E) => Effect.succeed(encode(value))
    })
  ))

/** A decode-only codec. `decode` validates and returns the whole value, or returns the problem as a string. */
export const readBy = <T, E>(encoded: Schema.Codec<E>, decode: (input: E) => T | string): Schema.Codec<T, E> =>
  encoded.pipe(Schema.decodeTo(
    Schema.declare((_value): _value is T => true),
    SchemaTransformation.transformEffect({
      decode: (input: E, options) => {
        const result = decode(input)
        return typeof result === "string"
          ? Effect.fail(new SchemaIssue.InvalidValue({ message: result }, input, options))
          : Effect.succeed(result)
      },
      encode: (value: T, options) =>
        Effect.fail(new SchemaIssue.Forbidden({ message: "only a server writes this" }, value, options))
    })
  ))

export const countPattern = /^(0|[1-9]\d{0,15})$/

const digits = Schema.String.check(Schema.isPattern(countPattern))

export const Count = digits.pipe(Schema.decodeTo(
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  SchemaTransformation.numberFromString
))

/** Parses a token. Returns undefined if the input is not one. */
export const tokenOf = (input: unknown): FencingToken | undefined => {
  if (typeof input !== "string" || !countPattern.test(input)) return undefined
  const token = Number(input)
  return token > 0 && Number.isSafeInteger(token) ? token as FencingToken : undefined
}

export const Token = digits.pipe(Schema.decodeTo(FencingToken, SchemaTransformation.numberFromString))

/** A boolean, encoded as `0` or `1`. */
export const Flag = Schema.Literals(["0", "1"]).transform([false, true])
