/** Where texts of Redis enter: through a codec, once, or refused with what was read. */
import * as MutexMetrics from "@effect-simba/core/MutexMetrics"
import { type BackendError, ProtocolError } from "@effect-simba/core/SimbaError"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

export type Read<T> = (read: unknown) => Exit.Exit<T, ProtocolError>

export const reading = <T, E>(where: string, codec: Schema.Codec<T, E>): Read<T> => {
  const decode = Schema.decodeUnknownResult(codec)
  return (read) => {
    const result = decode(read)
    return Result.isSuccess(result)
      ? Exit.succeed(result.success)
      : Exit.fail(
        new ProtocolError({
          where,
          read: typeof read === "string" ? read : JSON.stringify(read) ?? String(read),
          problem: result.failure.message
        })
      )
  }
}

/** What becomes of a message that cannot be read. */
export const unreadable = (channel: string, error: ProtocolError): Effect.Effect<void> =>
  Effect.logWarning(error.message).pipe(
    Effect.annotateLogs({ channel }),
    Effect.andThen(Metric.update(MutexMetrics.malformedMessages, 1))
  )

/** Messages of a channel, decoded; one that cannot be read is logged and passed over. */
export const receiving = <M, A>(
  subscriber: Subscriber["Service"],
  channel: string,
  read: Read<M>,
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
      Effect.tapError((error) => unreadable(channel, error)),
      Effect.eventually
    )
  }))
