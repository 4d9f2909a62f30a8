/** Parts of the codecs of stream ownership. */
import { FencingToken } from "@effect-simba/core/Ownership"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"

export const separator = "@@"

/** A text that is split by hand into the fields of `target`, which then checks them. */
export const text = <T, E>(
  target: Schema.Codec<T, E>,
  expected: string,
  decode: (text: string) => E | undefined,
  encode: (value: E) => string
): Schema.Codec<T, string> =>
  Schema.String.pipe(Schema.decodeTo(
    target,
    SchemaTransformation.transformEffect({
      decode: (input: string, options) => {
        const result = decode(input)
        return result === undefined
          ? Effect.fail(new SchemaIssue.InvalidValue({ message: `expected ${expected}` }, input, options))
          : Effect.succeed(result)
      },
      encode: (value: E) => Effect.succeed(encode(value))
    })
  ))

const digits = Schema.String.check(Schema.isPattern(/^(0|[1-9]\d{0,15})$/))

export const Count = digits.pipe(Schema.decodeTo(
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  SchemaTransformation.transform({ decode: (text) => Number(text), encode: (count) => String(count) })
))

export const Token = digits.pipe(Schema.decodeTo(
  Schema.toType(FencingToken),
  SchemaTransformation.transform({ decode: (text) => Number(text) as FencingToken, encode: (token) => String(token) })
))

/** The first part of an epoch. */
export const Session = Schema.String.check(Schema.isPattern(/^[0-9a-z]{12}$/))

export const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
