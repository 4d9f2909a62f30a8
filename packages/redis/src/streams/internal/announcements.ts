/** Adds announcements, reads new ones, and finds pending ones. Part of `store`. */
import type { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import {
  type Announcement,
  type ConsumerName,
  consumerPrefix,
  type Entry,
  type Service
} from "@effect-simba/core/streams/StreamStore"
import * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import { DriverError } from "../../internal/client/driverError.ts"
import { backendError, fromRedis } from "../../internal/client/errors.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import { PendingReply } from "./replies.ts"
import * as scripts from "./scripts.generated.ts"
import { millis, type ServiceContext, withTimeout } from "./service.ts"

/** The number of entries per page. */
const pageSize = 500

const encode = Schema.encodeEffect(StreamWire.Announcement)
const readEntries = reader("entries in the load-balancer stream", StreamWire.Entries)
const readRead = reader("a read of the load-balancer stream", StreamWire.ReadReply)
const readPendingEntries = reader("pending entries", PendingReply)
const readValues = reader("lease values", Schema.Array(Schema.NullOr(Schema.String)))

const isGoConsumer = (consumer: string): boolean => !consumer.startsWith(consumerPrefix)

type Part = Pick<Service, "announce" | "find" | "pending" | "read">

export const make = (context: ServiceContext): Part => {
  const { announced, failures, group, input, parse, redis } = context

  const announce = context.run("announce", scripts.announceStreams)
  const contents = context.run("read pending entries", scripts.readPending)
  const findAnnounced = context.run("find", scripts.findAnnouncement)
  const isUnfinished = context.run("find", scripts.readEntryState)

  const announceAll = Effect.fnUntraced(function*(announcements: ReadonlyArray<Announcement>) {
    for (const { stream } of announcements) yield* context.admit("announce", stream)
    const payloads = yield* Effect.forEach(
      announcements,
      ({ info, stream }) =>
        Effect.mapBoth(encode({ info, stream }), {
          onFailure: ({ message }) => {
            const problem = `the info of "${stream}" cannot be written as JSON: ${message}`
            return backendError("announce", new DriverError(problem, false))
          },
          onSuccess: (payload) => ({ stream, payload })
        })
    )
    const pages = yield* Effect.forEach(
      Arr.chunksOf(payloads, pageSize),
      (each) => announce({ input, announced, group, each })
    )
    return pages.flat().map(([entry, isNew]) => ({ entry, isNew }))
  })

  /** Go producers do not update the `announced` table, so search all entries, page by page. */
  const search = Effect.fnUntraced(function*(stream: StreamName) {
    let from = "-"
    for (;;) {
      const page = yield* context.send("find", readEntries, "XRANGE", input, from, "+", "COUNT", String(pageSize))
      for (const [entry, fields] of page) {
        const content = parse(entry, fields)
        if (content._tag !== "Announced" || content.stream !== stream) continue
        if (yield* isUnfinished({ input, group, entry })) return Option.some(content)
      }
      if (page.length < pageSize) return Option.none()
      from = `(${page[page.length - 1]![0]}`
    }
  })

  /** Reads the lease values of these entries. */
  const leasesOf = Effect.fnUntraced(function*(contents: ReadonlyArray<Entry>) {
    const entries = contents.filter((content) => content._tag === "Announced")
    if (entries.length === 0) return new Map<EntryId, string | undefined>()
    const values = yield* context.send(
      "read pending entries",
      readValues,
      "MGET",
      ...entries.map(({ entry, stream }) => keys.entryLease(stream, entry))
    )
    return new Map(entries.map(({ entry }, i) => [entry, values[i] ?? undefined] as const))
  })

  return {
    announce: announceAll,
    read: ({ block, consumer, count }) =>
      context.withGroup(
        Effect.scoped(Effect.gen(function*() {
          const connection = yield* redis.reserve
          return yield* connection.send(
            "XREADGROUP",
            "GROUP",
            group,
            consumer,
            "COUNT",
            String(Math.max(1, count)),
            "BLOCK",
            String(millis(block)),
            "STREAMS",
            input,
            ">"
          )
        })).pipe(
          Effect.mapError(fromRedis("read")),
          withTimeout("read", block),
          Effect.flatMap(readRead),
          Effect.map((reply) =>
            (reply ?? []).flatMap(([, entries]) => entries.map(([entry, fields]): Entry => parse(entry, fields)))
          )
        )
      ),
    pending: Effect.fnUntraced(function*({ after, consumer, count, known = () => undefined, minIdle }) {
      const limit = Math.max(1, count)
      const entries = yield* context.withGroup(context.send(
        "read pending entries",
        readPendingEntries,
        "XPENDING",
        input,
        group,
        "IDLE",
        String(Math.max(0, Math.round(Duration.toMillis(minIdle)))),
        after === undefined ? "-" : `(${after}`,
        "+",
        String(limit),
        ...consumer === undefined ? [] : [consumer]
      ))
      const found = new Map<EntryId, Entry>()
      for (const [entry] of entries) {
        const content = known(entry)
        if (content !== undefined) found.set(entry, content)
      }
      const unknown = entries.map(([entry]) => entry).filter((entry) => !found.has(entry))
      if (unknown.length > 0) {
        const read = yield* contents({ input, failures, group, each: unknown.map((entry) => ({ entry })) })
        for (const [entry, fields] of read) found.set(entry, parse(entry, fields))
      }
      const leases = yield* leasesOf(
        entries.flatMap(([entry, consumer]) => isGoConsumer(consumer) ? found.get(entry) ?? [] : [])
      )
      return {
        next: entries.length < limit ? undefined : entries[entries.length - 1]![0],
        entries: entries.flatMap(([entry, consumer, idle, deliveries]) => {
          const content = found.get(entry)
          return content === undefined ? [] : [{
            consumer: consumer as ConsumerName,
            idle: Duration.millis(idle),
            deliveries,
            goConsumer: isGoConsumer(consumer) ? { lease: leases.get(entry) } : undefined,
            content
          }]
        })
      }
    }),
    find: Effect.fnUntraced(function*(stream) {
      yield* context.admit("find", stream)
      const [found] = yield* findAnnounced({ input, announced, group, stream })
      const content = found && parse(...found)
      return content?._tag === "Announced" && content.stream === stream
        ? Option.some(content)
        : yield* search(stream)
    })
  }
}
