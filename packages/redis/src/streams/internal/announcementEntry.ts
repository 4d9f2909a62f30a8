/**
 * Decodes an entry in the load-balancer stream, to which data streams are announced. Used by `service`, `deadLetters`
 * and the command line.
 */
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Entry } from "@effect-simba/core/streams/StreamStore"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as StreamWire from "./messages.ts"

const decode = Schema.decodeUnknownResult(StreamWire.Announcement)

export const announcementField = "lbs-input"

/** Returns an announcement's text. Ignores the entry's other fields. */
export const textOf = (fields: StreamWire.Fields): string | undefined =>
  fields.find(([name]) => name === announcementField)?.[1]

/**
 * A malformed entry is returned with its problem, and the caller dead-letters it. `problemWith` returns why a data
 * stream cannot be owned in this service, if so.
 */
export const toEntry =
  (problemWith: (stream: string) => string | undefined) => (entry: EntryId, fields: StreamWire.Fields): Entry => {
    const text = textOf(fields)
    if (text === undefined) return { _tag: "Malformed", entry, problem: "it has no field \"lbs-input\"" }
    const decoded = decode(text)
    if (Result.isFailure(decoded)) return { _tag: "Malformed", entry, problem: decoded.failure.message }
    const { info, stream } = decoded.success
    const problem = problemWith(stream)
    return problem === undefined
      ? { _tag: "Announced", entry, stream, info }
      : { _tag: "Malformed", entry, problem }
  }
