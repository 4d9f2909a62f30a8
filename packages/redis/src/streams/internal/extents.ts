/** Reads data streams' extents, and counts their messages. Part of `store`. */
import type { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { Extent } from "@effect-simba/core/streams/StreamState"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as batchedRequest from "./batchedRequest.ts"
import { type Failed, isFailed } from "./replies.ts"
import * as scripts from "./scripts.generated.ts"
import type { ServiceContext } from "./service.ts"

type Part = Pick<Service, "count" | "extent">

/** The maximum number of messages that a call reads. Reading them blocks the server for about 1 ms. */
const mostCounted = 1000

/** How many times counting restarts if messages are deleted in the meantime. */
const restarts = 2

type Reply = Exclude<(typeof scripts.readExtents.reply.Type)[number], Failed | readonly []>

const toExtent = ([length, last, first, added, lastDeleted]: Reply): Extent => ({
  length,
  last,
  first: first === "" ? undefined : first,
  added: added === "" ? undefined : added,
  lastDeleted: lastDeleted === "" ? undefined : lastDeleted
})

/** Returns true if no messages were deleted between the two extents. */
const isUntouched = (before: Extent, after: Extent): boolean =>
  before.first === after.first && before.added! - before.length === after.added! - after.length

export const make = (context: ServiceContext): Part => {
  const readExtents = context.run("read extents", scripts.readExtents)
  const countPage = context.run("count messages", scripts.countMessages)

  const extent = batchedRequest.make("read the extent", (streams: ReadonlyArray<StreamName>) =>
    Effect.map(
      readExtents({ each: streams.map((stream) => ({ stream })) }),
      (replies) =>
        replies.map((reply) =>
          isFailed(reply) ? reply : reply.length === 0 ? Option.none() : Option.some(toExtent(reply))
        )
    ), (stream) => [stream])

  /**
   * Counts messages page by page. `counted` is undefined if messages were deleted between two pages or if the server
   * does not count additions.
   */
  const countOnce = (stream: StreamName, after: EntryId, last: EntryId | undefined) =>
    Effect.gen(function*() {
      let [from, until, total] = [after, last, 0]
      let before: Extent | undefined
      for (;;) {
        const reply = yield* countPage({ stream, after: from, last: until ?? "", most: mostCounted })
        if (reply.length === 0) return Option.none()
        const [length, end, first, added, lastDeleted, count, more] = reply
        const present = toExtent([length, end, first, added, lastDeleted])
        before ??= present
        total += count
        const isExact = present.added !== undefined && isUntouched(before, present)
        if (!isExact || more === "") return Option.some({ ...before, counted: isExact ? total : undefined })
        from = more
        until ??= end
      }
    })

  return {
    extent: (stream) => Effect.andThen(context.admit("read the extent", stream), extent(stream)),
    count: (stream, after, last) =>
      Effect.andThen(
        context.admit("count messages", stream),
        Effect.repeat(countOnce(stream, after, last), {
          times: restarts,
          until: (found) => Option.isNone(found) || found.value.added === undefined || found.value.counted !== undefined
        })
      )
  }
}
