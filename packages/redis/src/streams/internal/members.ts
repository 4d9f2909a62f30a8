/** The members of the fleet, tidying up behind them, and what operators look at. */
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import { toEntry } from "./announcementEntry.ts"
import * as StreamKeys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import * as replies from "./replies.ts"
import * as scripts from "./scripts.ts"
import { type Backend, millis } from "./service.ts"

/** Entries of one call. */
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
const readFlag = reader("the reply of the revive script", Schema.Literals(["0", "1"]))

const ours = ["simba-reason", "simba-id", "simba-token"]

type Part = Pick<Service, "heartbeat" | "deadLetters" | "inspect" | "leave" | "redrive" | "reap">

export const make = (backend: Backend): Part => {
  const { group, input, service } = backend
  const members = StreamKeys.members(service)
  const dead = StreamKeys.deadLetters(service)
  const announced = StreamKeys.announced(service)
  const failures = StreamKeys.failures(service)
  // Whatever the slot: to name the stream is all that is asked
  const parse = toEntry(() => undefined)

  const beat = backend.run("beat", scripts.recordHeartbeat, readMembers)
  const reap = backend.run("tidy", scripts.removeSilentConsumers, readCount)
  const removeFinished = backend.run("tidy", scripts.removeFinishedEntries, readFinished)
  const forgetFinished = backend.run("tidy", scripts.forgetFinishedEntries, readCursors)
  const inspect = backend.run("inspect", scripts.inspectService, readInspect)
  const revive = backend.run("revive", scripts.redriveDeadLetter, readFlag)

  return {
    heartbeat: ({ capacity, consumer, owned, session }, expiry) =>
      beat([members], [`${consumer}@@${session}`, capacity, owned, millis(expiry)]),
    leave: ({ consumer, session }) =>
      Effect.asVoid(backend.send("leave", readInteger, "HDEL", members, `${consumer}@@${session}`)),
    reap: (idle) =>
      backend.withGroup(Effect.gen(function*() {
        const consumers = Number(
          yield* reap([input, announced, failures], [group, millis(idle)])
        )
        let entries = 0
        let from = ""
        do {
          const [next, removed] = yield* removeFinished([input, StreamKeys.start(service)], [group, from, pageSize])
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
        backend.send(
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
      const [letter] = yield* backend.send("revive", readEntries, "XRANGE", dead, id, id)
      if (letter === undefined) return false
      const content = parse(...letter)
      const stream = content._tag === "Announced" ? content.stream : ""
      return (yield* revive([input, dead, announced, failures], [id, stream])) === "1"
    })
  }
}
