/**
 * Sends members' heartbeats, removes dead consumers and finished entries, and reads a service's state for operators.
 * Part of `store`.
 */
import { StreamName } from "@effect-simba/core/streams/StreamName"
import type { ServiceState } from "@effect-simba/core/streams/StreamState"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import * as keys from "./keys.ts"
import * as scripts from "./scripts.generated.ts"
import { millis, type ServiceContext } from "./service.ts"

/** The number of entries per page. */
const pageSize = 500

const readInteger = reader("a count", Schema.Int)

const readPaused = reader("pauses", Schema.Array(Schema.String))

const isStream = Schema.is(StreamName)

type Part = Pick<Service, "heartbeat" | "inspect" | "leave" | "paused" | "reap" | "removeConsumer" | "setPaused">

export const make = (context: ServiceContext): Part => {
  const { announced, deadLetters, failures, group, input, service } = context
  const members = keys.members(service)

  const heartbeat = context.run("heartbeat", scripts.recordHeartbeat)
  const reap = context.run("reap", scripts.removeSilentConsumers)
  const removeFinished = context.run("reap", scripts.removeFinishedEntries)
  const forgetFinished = context.run("reap", scripts.forgetFinishedEntries)
  const inspect = context.run("inspect", scripts.inspectService)
  const remove = context.run("leave", scripts.removeConsumer)

  const paused = Effect.map(
    context.send("read the pauses", readPaused, "HKEYS", keys.paused(service)),
    (names): ServiceState["paused"] => ({
      service: names.includes(""),
      // An operator may have written an invalid name
      streams: names.filter(isStream)
    })
  )

  return {
    paused,
    setPaused: (stream = "" as StreamName, isPaused) =>
      Effect.map(
        isPaused
          ? context.send("pause", readInteger, "HSET", keys.paused(service), stream, "1")
          : context.send("resume", readInteger, "HDEL", keys.paused(service), stream),
        (count) => count > 0
      ),
    heartbeat: ({ capacity, consumer, owned, session }, expiry) =>
      heartbeat({ members, member: `${consumer}@@${session}`, capacity, owned, expiry: millis(expiry) }),
    leave: ({ consumer, session }) =>
      Effect.asVoid(context.send("leave", readInteger, "HDEL", members, `${consumer}@@${session}`)),
    removeConsumer: (consumer) => remove({ input, group, consumer }),
    reap: (idle) =>
      context.withGroup(Effect.gen(function*() {
        const consumers = yield* reap({ input, announced, failures, group, idle: millis(idle) })
        let entries = 0
        let from = ""
        do {
          const [next, removed] = yield* removeFinished({ input, group, after: from, count: pageSize })
          entries += removed
          from = next
        } while (from !== "")
        let [failuresCursor, announcedCursor] = ["0", "0"]
        do {
          const page = { input, announced, failures, failuresCursor, announcedCursor, count: pageSize }
          ;[failuresCursor, announcedCursor] = yield* forgetFinished(page)
        } while (failuresCursor + announcedCursor !== "")
        return { consumers, entries }
      })),
    inspect: Effect.zipWith(
      inspect({ input, deadLetters, members, group }),
      paused,
      ([announced, pending, oldest, deadLetters, consumers, members], paused) => ({
        paused,
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
