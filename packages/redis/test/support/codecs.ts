/** Property tests for codecs of keys, messages and replies. Encoding and decoding must be inverses of each other. */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Effect, Equal, Result, Schema } from "effect"

/** Replaces one character in a text, or in one of a reply's texts. `by` may be empty. */
const Edit = Schema.Struct({
  at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })),
  by: Schema.Literals(["", "0", "1", "07", "-1", ".5", "@@", "@", " ", "x", "\"", "|", ":"])
})

const edited = (encoded: unknown, edit: typeof Edit.Type): unknown => {
  if (Array.isArray(encoded)) {
    const index = edit.at % Math.max(1, encoded.length)
    return encoded.map((one, i) => i === index ? edited(one, edit) : one)
  }
  if (typeof encoded !== "string") return encoded
  const at = edit.at % Math.max(1, encoded.length)
  return encoded.slice(0, at) + edit.by + encoded.slice(at + 1)
}

export const roundTrips = <T, E>(name: string, codec: Schema.Codec<T, E>) => {
  const decode = Schema.decodeUnknownResult(codec)
  const encode = Schema.encodeResult(codec)

  it.prop(
    `${name}: decoding reverses encoding, and encoding reverses decoding`,
    [Arbitrary.schema(codec)],
    ([value]) => {
      const text = Result.getOrThrow(encode(value))
      const read = Result.getOrThrow(decode(text))
      assert.isTrue(
        Equal.equals(read, value),
        `${JSON.stringify(value)} -> ${JSON.stringify(text)} -> ${JSON.stringify(read)}`
      )
      assert.deepStrictEqual(Result.getOrThrow(encode(read)), text)
    },
    { arbitrary: { runs: 300 } }
  )

  it.effect(`${name}: encoding a decoded text restores the text`, () =>
    Effect.gen(function*() {
      let decoded = 0
      // Random texts can never be decoded, so edit valid ones
      const result = yield* Arbitrary.checkEffect(
        Arbitrary.all([Arbitrary.schema(codec), Arbitrary.schema(Edit)]),
        ([value, edit]) => {
          const text = edited(Result.getOrThrow(encode(value)), edit)
          const read = decode(text)
          if (Result.isFailure(read)) return true
          decoded++
          return Equal.equals(Result.getOrThrow(encode(read.success)), text)
        },
        { runs: 300 }
      )
      assert.isUndefined(Arbitrary.formatCheckFailure(result))
      assert.isAbove(decoded, 0)
    }))
}

export const refuses = (name: string, codec: Schema.Codec<unknown, unknown>, table: ReadonlyArray<unknown>) =>
  it.each(table.map((text) => ({ text })))(`${name}: $text is refused`, ({ text }) => {
    const result = Schema.decodeUnknownResult(codec)(text)
    assert.isTrue(Result.isFailure(result), JSON.stringify(result))
  })
