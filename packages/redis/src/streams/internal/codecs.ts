/** Building blocks for stream-ownership codecs. */
import * as Schema from "effect/Schema"
import { separator, text } from "../../internal/client/codecs.ts"

/**
 * A codec for text that contains these fields in order, joined by the separator. The last field may contain the
 * separator.
 */
export const separated = <Fields extends Record<string, Schema.Codec<unknown, string>>>(fields: Fields) => {
  const names = Object.keys(fields)
  const target = Schema.Struct(fields) as unknown as Schema.Codec<
    { readonly [Name in keyof Fields]: Fields[Name]["Type"] },
    Readonly<Record<string, string>>
  >
  return text(
    target,
    (input) => {
      const fields = input.split(separator)
      const rest = fields.splice(names.length - 1).join(separator)
      return Object.fromEntries([...fields, rest].map((field, i) => [names[i]!, field]))
    },
    (value) => names.map((name) => value[name]).join(separator)
  )
}

/** The first part of an epoch. It identifies a consumer's session. */
export const Session = Schema.String.check(Schema.isPattern(/^[0-9a-z]{12}$/))

export const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
