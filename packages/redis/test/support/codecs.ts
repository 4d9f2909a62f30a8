/** Property tests for codecs of keys, messages and replies: encoding and decoding are inverses of each other. */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Equal, Result, Schema } from "effect"

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

  it.prop(`${name}: a text that can be decoded is encoded to the same text`, [Schema.String], ([text]) => {
    const read = decode(text as unknown)
    if (Result.isSuccess(read)) assert.deepStrictEqual<unknown>(Result.getOrThrow(encode(read.success)), text)
  }, { arbitrary: { runs: 300 } })
}

export const refuses = (name: string, codec: Schema.Codec<unknown, unknown>, table: ReadonlyArray<unknown>) =>
  it.each(table.map((text) => ({ text })))(`${name}: $text is refused`, ({ text }) => {
    const result = Schema.decodeUnknownResult(codec)(text)
    assert.isTrue(Result.isFailure(result), JSON.stringify(result))
  })
