/** Parts of the codecs of stream ownership. */
import * as Schema from "effect/Schema"
import * as codecs from "../../internal/client/codecs.ts"

/** A text that is split by hand into the fields of `target`, which then checks them. */
export const text = <T, E extends object>(
  target: Schema.Codec<T, E>,
  expected: string,
  decode: (text: string) => E | undefined,
  encode: (value: E) => string
): Schema.Codec<T, string> => codecs.text(target, (input) => decode(input) ?? `expected ${expected}`, encode)

/** The first part of an epoch. */
export const Session = Schema.String.check(Schema.isPattern(/^[0-9a-z]{12}$/))

export const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
