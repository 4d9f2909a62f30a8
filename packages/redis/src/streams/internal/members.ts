/** Heartbeats of the members, removal of dead consumers and finished entries, and the view for operators. */
import type { Service } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import * as keys from "./keys.ts"
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
const readFlag = reader("the reply of a script", Schema.Literals(["0", "1"]))

type Part = Pick<Service, "heartbeat" | "inspect" | "leave" | "reap" | "removeConsumer">

export const make = (context: ServiceContext): Part => {
  const { group, input, service } = context
  const members = keys.members(service)
  const dead = keys.deadLetters(service)
  const announced = keys.announced(service)
  const failures = keys.failures(service)

  const heartbeat = context.run("heartbeat", scripts.recordHeartbeat, readMembers)
  const reap = context.run("reap", scripts.removeSilentConsumers, readCount)
  const removeFinished = context.run("reap", scripts.removeFinishedEntries, readFinished)
  const forgetFinished = context.run("reap", scripts.forgetFinishedEntries, readCursors)
  const inspect = context.run("inspect", scripts.inspectService, readInspect)
  const remove = context.run("leave", scripts.removeConsumer, readFlag)

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
    )
  }
}
