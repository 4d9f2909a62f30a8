/** Reads the messages of a data stream, and moves its checkpoint. */
import type { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { Checkpoint, Extent, RawMessage } from "@effect-simba/core/streams/StreamState"
import type { Held, Service } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Count } from "../../internal/client/codecs.ts"
import { reader } from "../../internal/client/decode.ts"
import * as batchedRequest from "./batchedRequest.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import { eachOf, ExtentReply, isFailed, LagReply } from "./replies.ts"
import * as scripts from "./scripts.ts"
import type { ServiceContext } from "./service.ts"

const Moved = Schema.Literals(["Committed", "Behind", "Beyond", "NotOwner"])
const SeekReply = Schema.Union([
  Schema.Tuple([Schema.Literal("Moved"), Schema.String]),
  Schema.Literals(["NotOwner", "Owned"])
])
const readCheckpoint = reader("a checkpoint", Schema.NullOr(StreamWire.Checkpoint))
const readMessages = reader("messages of a data stream", StreamWire.Entries)

export const toMessages = (rows: typeof StreamWire.Entries.Type): ReadonlyArray<RawMessage> =>
  rows.map(([id, fields]) => ({ id, fields }))

type Part = Pick<
  Service,
  "checkpoint" | "commit" | "end" | "extent" | "keepCheckpoints" | "lag" | "messages" | "seek" | "trim"
>

/** So many messages are counted one by one, at most: Redis has to read each. */
const mostCounted = 1000

const mostId = "18446744073709551615-18446744073709551615"

const toExtent = (reply: typeof ExtentReply.Type): Option.Option<Extent> => {
  if (reply.length === 0) return Option.none()
  const [length, last, first, added, lastDeleted] = reply
  return Option.some({
    length,
    last,
    first: first === "" ? undefined : first,
    added: added === "" ? undefined : added,
    lastDeleted: lastDeleted === "" ? undefined : lastDeleted
  })
}

export const make = (context: ServiceContext): Part => {
  const commitAll = context.run("commit", scripts.commitCheckpoints, eachOf(Moved))
  const readEnd = context.run("look for the end", scripts.readEnd, Schema.Literals(["Open", "Reopened", "Ended"]))
  const readExtents = context.run("read extents", scripts.readExtents, eachOf(ExtentReply))
  const seek = context.run("seek", scripts.seekCheckpoint, SeekReply)
  const keep = context.run("keep checkpoints", scripts.keepCheckpoints, Schema.Literal("1"))

  const { retention } = context
  const commit = batchedRequest.make(
    "commit",
    (commits: ReadonlyArray<readonly [held: Held, id: EntryId, last: "1" | "", offset: number | ""]>) =>
      commitAll(
        [
          context.failures,
          ...commits.flatMap(([{ stream }]) => [keys.streamLease(stream), keys.checkpoint(stream), stream] as const)
        ],
        [
          retention,
          ...commits.flatMap(([held, id, last, offset]) =>
            [keys.streamValue(held), held.entry, id, last, offset] as const
          )
        ]
      )
  )

  const extent = batchedRequest.make(
    "read the extent",
    (streams: ReadonlyArray<StreamName>) =>
      Effect.map(
        readExtents(streams, []),
        (replies) => replies.map((reply) => isFailed(reply) ? reply : toExtent(reply))
      )
  )

  const readLags = context.run("read lags", scripts.readLags, eachOf(LagReply))
  const trim = context.run("trim", scripts.trimMessages, Count)

  const lag = batchedRequest.make("read the lag", (streams: ReadonlyArray<StreamName>) =>
    Effect.map(
      readLags(streams.flatMap((stream) => [stream, keys.checkpoint(stream)] as const), [mostCounted]),
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
    ))

  return {
    lag: (stream) => Effect.andThen(context.admit("read the lag", stream), lag(stream)),
    trim: (stream, keep) =>
      Effect.gen(function*() {
        yield* context.admit("trim", stream)
        let removed = 0
        for (;;) {
          const count = yield* trim([stream, keys.checkpoint(stream)], [Math.round(Duration.toMillis(keep))])
          if (count === 0) return removed
          removed += count
        }
      }),
    commit: (held, id, isLast, offset) => commit([held, id, isLast === true ? "1" : "", offset ?? ""]),
    seek: (stream, { id, offset }, { force, held } = {}) =>
      Effect.andThen(
        context.admit("seek", stream),
        Effect.map(
          seek(
            [keys.streamLease(stream), keys.checkpoint(stream)],
            [
              held === undefined ? "" : keys.streamValue(held),
              held?.entry ?? "",
              force === true ? "1" : "",
              id,
              offset ?? "",
              retention
            ]
          ),
          (reply) => typeof reply === "string" ? reply : reply[0]
        )
      ),
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
    end: ({ entry, stream }) => readEnd([keys.checkpoint(stream), stream], [entry]),
    extent: (stream) => Effect.andThen(context.admit("read the extent", stream), extent(stream)),
    keepCheckpoints: (streams) =>
      Effect.asVoid(
        batchedRequest.inCalls(
          streams,
          (streams) => Effect.as(keep(streams.map(keys.checkpoint), [retention]), streams)
        )
      ),
    messages: (stream, after, count) =>
      Effect.andThen(
        context.admit("read messages", stream),
        // Redis refuses to read after the largest id
        after === mostId ? Effect.succeed([]) : Effect.map(
          context.send("read messages", readMessages, "XRANGE", stream, `(${after}`, "+", "COUNT", String(count)),
          toMessages
        )
      )
  }
}
