/**
 * Reads a data stream's messages, checkpoint and lag, moves the checkpoint, and trims processed messages. Part of
 * `store`.
 */
import type { StreamName } from "@effect-simba/core/streams/StreamName"
import type { Checkpoint, RawMessage } from "@effect-simba/core/streams/StreamState"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import * as batchedRequest from "./batchedRequest.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import { isFailed } from "./replies.ts"
import * as scripts from "./scripts.generated.ts"
import type { ServiceContext } from "./service.ts"

const readCheckpoint = reader("a checkpoint", Schema.NullOr(StreamWire.Checkpoint))
const readState = reader(
  "a lease and a checkpoint",
  Schema.Tuple([Schema.NullOr(Schema.String), Schema.NullOr(Schema.String)])
)
const readMessages = reader("messages in a data stream", StreamWire.Entries)

export const toMessages = (entries: typeof StreamWire.Entries.Type): ReadonlyArray<RawMessage> =>
  entries.map(([id, fields]) => ({ id, fields }))

type Part = Pick<
  Service,
  "checkpoint" | "commit" | "end" | "keepCheckpoints" | "lag" | "messages" | "seek" | "trim"
>

/** The maximum number of messages that Redis counts one by one. */
const mostCounted = 1000

const mostId = "18446744073709551615-18446744073709551615"

export const make = (context: ServiceContext): Part => {
  const commitAll = context.run("commit", scripts.commitCheckpoints)
  const readEnd = context.run("read the end", scripts.readEnd)
  const seek = context.run("seek", scripts.seekCheckpoint)
  const keep = context.run("keep checkpoints", scripts.keepCheckpoints)

  const { failures, retention } = context
  const commit = batchedRequest.make(
    "commit",
    (each: Parameters<typeof commitAll>[0]["each"]) => commitAll({ failures, retention, each }),
    ({ checkpoint, stream, streamLease }) => [failures, streamLease, checkpoint, stream]
  )

  const readLags = context.run("read lags", scripts.readLags)
  const trim = context.run("trim", scripts.trimMessages)

  const lag = batchedRequest.make("read the lag", (streams: ReadonlyArray<StreamName>) =>
    Effect.map(
      readLags({ most: mostCounted, each: streams.map((stream) => ({ stream, checkpoint: keys.checkpoint(stream) })) }),
      (replies) =>
        replies.map((reply) => {
          if (isFailed(reply)) return reply
          const [messages, isMore, age, first] = reply
          return {
            messages,
            isCounted: isMore === "",
            age: Duration.millis(age === "" ? 0 : age),
            first: first === "" ? undefined : first
          }
        })
    ), (stream) => [stream, keys.checkpoint(stream)])

  return {
    lag: (stream) => Effect.andThen(context.admit("read the lag", stream), lag(stream)),
    trim: (stream, keep) =>
      Effect.gen(function*() {
        yield* context.admit("trim", stream)
        let removed = 0
        for (;;) {
          const count = yield* trim({
            stream,
            checkpoint: keys.checkpoint(stream),
            keep: Math.round(Duration.toMillis(keep))
          })
          if (count === 0) return removed
          removed += count
        }
      }),
    commit: (ownership, id, isLast, offset) =>
      commit({
        streamLease: keys.streamLease(ownership.stream),
        checkpoint: keys.checkpoint(ownership.stream),
        stream: ownership.stream,
        leaseValue: keys.streamValue(ownership),
        entry: ownership.entry,
        id,
        last: isLast === true ? "1" : "",
        offset: offset ?? ""
      }),
    seek: (stream, { id, offset }, { force, from, owner } = {}) => {
      const [streamLease, checkpoint] = [keys.streamLease(stream), keys.checkpoint(stream)]
      const move = (leaseValue: string, from: string) =>
        seek({
          streamLease,
          checkpoint,
          leaseValue,
          entry: owner?.entry ?? "",
          force: force === true ? "1" : "",
          from,
          id,
          offset: offset ?? "",
          retention
        })
      // Include the lease and the checkpoint in the request: a late copy of it then changes nothing
      const byOperator = Effect.flatMap(
        context.send("seek", readState, "MGET", streamLease, checkpoint),
        ([lease, text]) => move(lease ?? "", /^\d+-\d+/.exec(text ?? "")?.[0] ?? "")
      ).pipe(Effect.repeat({ until: (reply) => reply !== "Changed" }))
      return Effect.andThen(
        context.admit("seek", stream),
        owner === undefined ? byOperator : move(keys.streamValue(owner), from ?? "")
      )
    },
    checkpoint: (stream) =>
      Effect.andThen(
        context.admit("checkpoint", stream),
        Effect.map(
          context.send("checkpoint", readCheckpoint, "GET", keys.checkpoint(stream)),
          (checkpoint) =>
            Option.map(
              Option.fromNullishOr(checkpoint),
              ({ id, offset }): Checkpoint => ({ id, offset: offset === "" ? undefined : offset })
            )
        )
      ),
    end: ({ entry, stream }) => readEnd({ checkpoint: keys.checkpoint(stream), stream, entry }),
    keepCheckpoints: (streams) =>
      Effect.asVoid(
        batchedRequest.inCalls(
          streams,
          (streams) =>
            Effect.as(
              keep({ retention, each: streams.map((stream) => ({ checkpoint: keys.checkpoint(stream) })) }),
              streams
            )
        )
      ),
    messages: (stream, after, count) =>
      Effect.andThen(
        context.admit("read messages", stream),
        // Redis rejects a read after the largest possible id
        after === mostId ? Effect.succeed([]) : Effect.map(
          context.send("read messages", readMessages, "XRANGE", stream, `(${after}`, "+", "COUNT", String(count)),
          toMessages
        )
      )
  }
}
