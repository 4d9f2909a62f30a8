/** Decodes an entry of the load-balancer stream. */
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Entry } from "@effect-simba/core/streams/StreamStore"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as StreamWire from "./messages.ts"

const decode = Schema.decodeUnknownExit(StreamWire.Announcement)

/** `problemWith` returns why a data stream cannot be owned here. */
export const toEntry =
  (problemWith: (stream: string) => string | undefined) => (entry: EntryId, fields: StreamWire.Fields): Entry => {
    const text = StreamWire.announcementOf(fields)
    if (text === undefined) return { _tag: "Malformed", entry, problem: "it has no field \"lbs-input\"" }
    const exit = decode(text)
    if (Exit.isFailure(exit)) {
      const error = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
      return { _tag: "Malformed", entry, problem: error?.message ?? "its field \"lbs-input\" cannot be read" }
    }
    const { info, stream } = exit.value
    const problem = problemWith(stream)
    return problem === undefined
      ? { _tag: "Announced", entry, stream, info }
      : { _tag: "Malformed", entry, problem }
  }
