/**
 * Decodes a data stream's messages, and determines whether each one is the last. Decoding fails if a message does not
 * match the schema, or if user code throws, as it would on every attempt. `messageReader` then dead-letters the
 * message.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Message, ReadOptions } from "../StreamMessages.ts"
import type { RawMessage } from "../StreamState.ts"
import { failureText } from "./failureText.ts"
import { reasonOf } from "./leaseRequests.ts"

const thrown = (what: string, error: unknown): string => reasonOf(`${what} failed: ${failureText(Cause.die(error))}`)

/** Calls a user function that should not throw. If it throws, fails with a text for the dead letter. */
export const calling = <A>(option: "until" | "key", call: () => A): Result.Result<A, string> =>
  Result.try({ try: call, catch: (error) => thrown(`\`${option}\``, error) })

const valueOf = <A, R>(
  schema: Schema.Codec<A, unknown, R, unknown>,
  field: string | undefined
): (message: RawMessage) => Effect.Effect<A, string, R> => {
  const decoding = (decoded: Effect.Effect<A, Schema.SchemaError, R>) =>
    Effect.catchCause(decoded, (cause): Effect.Effect<never, string> => {
      const error = Cause.findErrorOption(cause)
      if (Option.isSome(error)) return Effect.fail(reasonOf(error.value.message))
      return Cause.hasInterrupts(cause)
        ? Effect.failCause(cause as Cause.Cause<never>)
        : Effect.fail(thrown("the schema", Cause.squash(cause)))
    })
  if (field === undefined) {
    const decode = Schema.decodeUnknownEffect(schema)
    return ({ fields }: RawMessage) => decoding(decode(Object.fromEntries(fields)))
  }
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return ({ fields }: RawMessage) => {
    const text = fields.findLast(([name]) => name === field)?.[1]
    return text === undefined ? Effect.fail(`there is no field ${JSON.stringify(field)}`) : decoding(decode(text))
  }
}

/** Decodes a message, or fails with the reason for its dead letter. */
export type Decoder<A, R> = (message: RawMessage, offset: number | undefined) => Effect.Effect<Message<A>, string, R>

export const decoderOf = <A, R>(
  schema: Schema.Codec<A, unknown, R, unknown>,
  { field, until }: Pick<ReadOptions<A, unknown>, "field" | "until">
): Decoder<A, R> => {
  const decode = valueOf(schema, field)
  return (raw, offset) =>
    Effect.flatMap(decode(raw), (value) => {
      const message = { ...raw, value, offset }
      const isLast = calling("until", () => until?.(message) ?? false)
      return Result.isSuccess(isLast)
        ? Effect.succeed({ ...message, isLast: isLast.success })
        : Effect.fail(isLast.failure)
    })
}
