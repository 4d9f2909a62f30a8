/** Heartbeats of the members, removal of dead consumers and finished entries, and the view for operators. */
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import { toEntry } from "./announcementEntry.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import * as replies from "./replies.ts"
import * as scripts from "./scripts.ts"
import { millis, type ServiceContext } from "./service.ts"

/** Entries of one page. */
const pageSize = 500

const Digits = Schema.String.check(Schema.isPattern(/^\d{1,15}$/))

const readMembers = reader("the members of the fleet", Schema.Array(replies.MemberReply))
const readCount = reader("a count", Digits)
const readInteger = reader("a count", Schema.Int)
const readFinished = reader(
  "the reply of the script that removes finished entries",
  Schema.Tuple([Schema.String, Digits])
)
const readCursors = reader(
  "the reply of the script that forgets finished entries",
  Schema.Tuple([Schema.String, Schema.String])
)
const readInspect = reader("the reply of the inspect script", replies.InspectReply)
const readEntries = reader("dead letters", StreamWire.Entries)
const readFlag = reader("the reply of a script", Schema.Literals(["0", "1"]))

const ours = ["simba-reason", "simba-id", "simba-token"]

type Part = Pick<Service, "heartbeat" | "deadLetters" | "inspect" | "leave" | "redrive" | "reap" | "removeConsumer">

export const make = (context: ServiceContext): Part => {
  const { group, input, service } = context
  const members = keys.members(service)
  const dead = keys.deadLetters(service)
  const announced = keys.announced(service)
  const failures = keys.failures(service)
  const parse = toEntry(context.problemWith)

  const heartbeat = context.run("heartbeat", scripts.recordHeartbeat, readMembers)
  const reap = context.run("reap", scripts.removeSilentConsumers, readCount)
  const removeFinished = context.run("reap", scripts.removeFinishedEntries, readFinished)
  const forgetFinished = context.run("reap", scripts.forgetFinishedEntries, readCursors)
  const inspect = context.run("inspect", scripts.inspectService, readInspect)
  const remove = context.run("leave", scripts.removeConsumer, readFlag)
  const redrive = context.run("redrive", scripts.redriveDeadLetter, readFlag)

  return {
    heartbeat: ({ capacity, consumer, owned, session }, expiry) =>
      heartbeat([members], [`${consumer}@@${session}`, capacity, owned, millis(expiry)]),
    leave: ({ consumer, session }) =>
      Effect.asVoid(context.send("leave", readInteger, "HDEL", members, `${consumer}@@${session}`)),
    removeConsumer: (consumer) => Effect.map(remove([input], [group, consumer]), (gone) => gone === "1"),
    reap: (idle) =>
      context.withGroup(Effect.gen(function*() {
        const consumers = Number(
          yield* reap([input, announced, failures], [group, millis(idle)])
        )
        let entries = 0
        let from = ""
        do {
          const [next, removed] = yield* removeFinished([input, keys.start(service)], [group, from, pageSize])
          entries += Number(removed)
          from = next
        } while (from !== "")
        let cursors: readonly [string, string] = ["0", "0"]
        do cursors = yield* forgetFinished([input, announced, failures], [...cursors, pageSize])
        while (cursors.some((cursor) => cursor !== ""))
        return { consumers, entries }
      })),
    inspect: Effect.map(
      Effect.suspend(() => inspect([input, dead, members], [group])),
      ([announced, pending, oldest, deadLetters, consumers, members]) => ({
        announced,
        pending,
        oldest: Duration.millis(oldest),
        deadLetters,
        consumers: consumers.map(([name, pending, idle]) => ({ name, pending, idle: Duration.millis(idle) })),
        members
      })
    ),
    deadLetters: (after, count) =>
      Effect.map(
        context.send(
          "look at dead letters",
          readEntries,
          "XRANGE",
          dead,
          after === undefined ? "-" : `(${after}`,
          "+",
          "COUNT",
          String(Math.max(1, count))
        ),
        (rows) =>
          rows.map(([id, fields]) => {
            const of = (name: string) => fields.findLast((field) => field[0] === name)?.[1] ?? ""
            return {
              id,
              entry: of("simba-id") as EntryId,
              reason: of("simba-reason"),
              fields: fields.filter(([name]) => !ours.includes(name))
            }
          })
      ),
    redrive: Effect.fnUntraced(function*(id) {
      const [letter] = yield* context.send("redrive", readEntries, "XRANGE", dead, id, id)
      if (letter === undefined) return false
      const content = parse(...letter)
      const stream = content._tag === "Announced" ? content.stream : ""
      const checkpoint = stream === "" ? dead : keys.checkpoint(stream)
      return (yield* redrive([input, dead, announced, checkpoint], [id, stream])) === "1"
    })
  }
}
