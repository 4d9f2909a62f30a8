/** XINFO: describes a stream, its groups and their consumers. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Stream } from "../data/stream.ts"
import { lag, MIN_ID, printId } from "../data/stream.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail } from "../reply.ts"
import { entryReply } from "./streams.ts"

const summary = (stream: Stream): ReadonlyArray<Value> => [
  "length",
  stream.entries.length,
  "radix-tree-keys",
  stream.nodes.length,
  "radix-tree-nodes",
  stream.nodes.length + 1,
  "last-generated-id",
  printId(stream.lastId),
  "max-deleted-entry-id",
  printId(stream.maxDeletedId),
  "entries-added",
  stream.entriesAdded,
  "recorded-first-entry-id",
  printId(stream.entries[0]?.id ?? MIN_ID)
]

const full = (stream: Stream, count: number): Value => [
  ...summary(stream),
  "entries",
  stream.entries.slice(0, count === 0 ? undefined : count).map(entryReply),
  "groups",
  sorted(stream.groups).map((group) => [
    "name",
    group.name,
    "last-delivered-id",
    printId(group.lastId),
    "entries-read",
    group.entriesRead === -1 ? null : group.entriesRead,
    "lag",
    lag(stream, group),
    "pel-count",
    group.pending.length,
    "pending",
    group.pending.slice(0, count === 0 ? undefined : count)
      .map((item) => [printId(item.id), item.consumer.name, item.deliveredAt, item.deliveries]),
    "consumers",
    sorted(group.consumers).map((consumer) => [
      "name",
      consumer.name,
      "seen-time",
      consumer.seenAt,
      "pel-count",
      consumer.pending,
      "pending",
      group.pending.filter((item) => item.consumer === consumer).slice(0, count === 0 ? undefined : count)
        .map((item) => [printId(item.id), item.deliveredAt, item.deliveries])
    ])
  ])
]

const sorted = <A extends { readonly name: string }>(items: ReadonlyMap<string, A>): Array<A> =>
  Array.from(items.values()).sort((a, b) => a.name < b.name ? -1 : 1)

const xinfo: Handler = (context, args) => {
  const sub = args[1]!.toLowerCase()
  const stream = context.db.readAs(args[2]!, "stream")?.value
  if (stream === undefined) return fail("ERR no such key")
  if (sub === "groups") {
    return sorted(stream.groups).map((group) => [
      "name",
      group.name,
      "consumers",
      group.consumers.size,
      "pending",
      group.pending.length,
      "last-delivered-id",
      printId(group.lastId),
      "entries-read",
      group.entriesRead === -1 ? null : group.entriesRead,
      "lag",
      lag(stream, group)
    ])
  }
  if (sub === "consumers") {
    const group = stream.groups.get(args[3]!)
    if (group === undefined) {
      return fail(`NOGROUP No such consumer group '${args[3]!}' for key name '${args[2]!}'`)
    }
    return sorted(group.consumers).map((consumer) => [
      "name",
      consumer.name,
      "pending",
      consumer.pending,
      "idle",
      Math.max(0, context.now - consumer.seenAt)
    ])
  }
  if (args.length > 3) {
    if (args[3]!.toLowerCase() !== "full" || (args.length !== 4 && args.length !== 6)) {
      return fail("ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.")
    }
    if (args.length === 6 && args[4]!.toLowerCase() !== "count") return fail("ERR syntax error")
    const count = args.length === 6 ? integer(args[5]!) : 10
    return full(stream, count < 0 ? 10 : count)
  }
  return [
    ...summary(stream),
    "groups",
    stream.groups.size,
    "first-entry",
    stream.entries[0] === undefined ? null : entryReply(stream.entries[0]),
    "last-entry",
    stream.entries.length === 0 ? null : entryReply(stream.entries[stream.entries.length - 1]!)
  ]
}

export const streamInfoCommands: ReadonlyArray<Command> = [
  define("xinfo", xinfo)
]
