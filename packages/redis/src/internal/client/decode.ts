/** Decodes replies and messages from Redis with a codec. Malformed input is reported by `malformedInput`. */
import type { BackendError, ProtocolError } from "@effect-simba/core/SimbaError"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { malformed, reportMalformed } from "./malformedInput.ts"

export type Reader<T> = (input: unknown) => Exit.Exit<T, ProtocolError>

/** `where` names the input in error messages. */
export const reader = <T, E>(where: string, codec: Schema.Codec<T, E>): Reader<T> => {
  const decode = Schema.decodeUnknownResult(codec)
  return (input) => {
    const result = decode(input)
    return Result.isSuccess(result)
      ? Exit.succeed(result.success)
      : Exit.fail(malformed(where, input, result.failure.message))
  }
}

/**
 * Like `reader`, for the replies and messages in each turn: a codec would take longer than their `decode`, which
 * returns the value, or the problem as a string.
 */
export const plainReader = <T>(where: string, decode: (input: unknown) => T | string): Reader<T> => (input) => {
  const result = decode(input)
  return typeof result === "string" ? Exit.fail(malformed(where, input, result)) : Exit.succeed(result)
}

/** Subscribes to a channel and decodes its messages. A malformed message is logged and skipped. */
export const subscribe = <M, A>(
  subscriber: Subscriber["Service"],
  channel: string,
  read: Reader<M>,
  on: { readonly message: (message: M) => A; readonly gap: A }
): Effect.Effect<
  { readonly next: Effect.Effect<A>; readonly bound: Duration.Duration | undefined },
  BackendError,
  Scope.Scope
> =>
  Effect.map(subscriber.subscribe(channel), (notices) => ({
    bound: subscriber.bound,
    next: Effect.flatMap(
      Queue.take(notices),
      (notice) => notice._tag === "Gap" ? Effect.succeed(on.gap) : Effect.map(read(notice.text), on.message)
    ).pipe(
      Effect.tapError((error) => reportMalformed(channel, error)),
      Effect.eventually
    )
  }))
