/** The data-stream programs for `pnpm explore`, by name. */
import { StreamClient, type StreamLease } from "@effect-simba/core/streams"
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Simulation } from "@effect-simba/testkit"
import { Effect, Schedule } from "effect"
import { cure } from "../simulate/streamHandler.ts"
import { service } from "../simulate/streamSettings.ts"
import type { Scope } from "./scope.ts"
import {
  announce,
  checkpointOf,
  type Client,
  insist,
  isHandOver,
  isOfOwner,
  noted,
  plan,
  processOne,
  processOrAwait,
  send,
  until,
  write,
  writeAll,
  writeOne
} from "./streamProgram.ts"

/** Like the Go client, adds an announcement without checking for an earlier one. */
const repeatAnnouncement = (client: Client, stream: string) =>
  Effect.andThen(
    insist(
      send(
        "XADD",
        `${service}-input`,
        "*",
        "lbs-input",
        JSON.stringify({ DataStreamName: stream, Info: { repeated: true } })
      )
    ),
    Effect.sync(() => client.note("announced", { resource: stream }))
  )

/** The only deviations are lost requests from owners. */
const lostRequests: Simulation.Plan<never>["vary"] = {
  kills: false,
  losses: true,
  where: ({ args, at }) => at === "request" && isOfOwner(args)
}

/** Ends each data stream differently: done, failed, with a dead message, or yielded. */
const endLate = (lease: StreamLease.StreamLease, client: Client) =>
  Effect.gen(function*() {
    const { stream } = lease
    if (stream === "s2") return yield* Effect.fail("the work failed")
    if (stream === "s3") {
      yield* lease.deadLetter({ id: "1-0" as EntryId, fields: [["text", "1"]] }, "it cannot be read")
    }
    if (stream === "s4") {
      const isFirst = yield* client.outside(0.1, ({ state }) => {
        const { size } = state
        return state.set("yielded", true).size > size
      })
      if (isFirst) return yield* lease.yield
    }
    yield* processOne(lease, client, true)
  })

export const streamScopes: Readonly<Record<string, Scope>> = {
  stream: {
    what: "two consumers of one data stream, one of which leaves; another message is announced at the end",
    plan: plan({
      streams: [["s1", "none"]],
      before: (client) => writeAll(client, "s1", 1, 3),
      produce: (client) =>
        Effect.gen(function*() {
          yield* announce(client, "s1")
          yield* Effect.sleep("100 millis")
          yield* writeAll(client, "s1", 4, 4)
          yield* announce(client, "s1")
        }),
      second: [0, 20],
      last: "4-0"
    })
  },
  buried: {
    what: "a data stream that is dead-lettered and, once its handler is fixed, redriven",
    plan: plan({
      streams: [["s1", "curable"]],
      settings: { maxFailures: 1 },
      before: (client) => writeAll(client, "s1", 1, 2),
      produce: (client) =>
        Effect.gen(function*() {
          yield* announce(client, "s1")
          // The producer may have redriven the letter before a restart
          const letters = yield* insist(Effect.all([StreamClient.deadLetters(), checkpointOf("s1")])).pipe(
            Effect.repeat({
              until: ([letters, checkpoint]) => letters.length > 0 || checkpoint.startsWith("2-0@"),
              schedule: Schedule.spaced("200 millis")
            }),
            Effect.map(([letters]) => letters)
          )
          yield* cure(client)
          for (const { id } of letters.slice(0, 1)) yield* insist(StreamClient.redrive(id))
        }),
      second: [0, Infinity],
      last: "2-0"
    })
  },
  rebalance: {
    what: "a consumer of two data streams that hands one over to a consumer without any",
    plan: plan({
      streams: [["s1", "none"], ["s2", "none"]],
      settings: { balance: true },
      // Wait until the members have been stable for almost as long as a hand-over requires
      before: (client) =>
        client.generation > 1 ? Effect.void : Effect.gen(function*() {
          for (const stream of ["s1", "s2"]) {
            yield* write(stream, 1, 2)
            yield* announce(client, stream)
          }
          yield* Effect.sleep("2500 millis")
        }),
      produce: (client) =>
        Effect.gen(function*() {
          yield* Effect.sleep("400 millis")
          for (const stream of ["s1", "s2"]) yield* writeAll(client, stream, 2, 2)
        }),
      second: [300, Infinity],
      last: "2-0",
      vary: { delays: [1800], where: ({ args, at }) => at === "arrival" || at === "request" && isHandOver(args) }
    })
  },
  late: {
    what: "owners' requests that arrive after the leases have expired: done, yielded, failed, dead, committed",
    plan: plan({
      streams: ["s1", "s2", "s3", "s4"].map((stream) => [stream, "none"] as const),
      settings: { maxFailures: 1 },
      before: () => Effect.void,
      produce: (client) =>
        Effect.forEach(["s1", "s2", "s3", "s4"], (stream) =>
          Effect.andThen(
            writeOne(client, stream, stream === "s3" ? "text" : "n"),
            announce(client, stream)
          ), { discard: true }),
      handle: (lease, client) => noted(lease, client, endLate(lease, client)),
      second: [0, Infinity],
      last: "1-0",
      finishes: true,
      vary: { kills: false, delays: [1800], where: ({ args, at }) => at === "request" && isOfOwner(args) }
    })
  },
  severed: {
    what: "an owner that is cut off until another consumer has taken its data stream",
    plan: plan({
      streams: [["s1", "none"]],
      before: (client) => writeOne(client, "s1"),
      produce: (client) => announce(client, "s1"),
      handle: (lease, client) =>
        noted(lease, client, Effect.andThen(Effect.sleep("3 seconds"), processOne(lease, client, true))),
      second: [0, Infinity],
      last: "1-0",
      finishes: true,
      duration: "12 seconds",
      vary: { kills: false, partitions: [2600], where: ({ args, at }) => at === "request" && isOfOwner(args) }
    })
  },
  hanging: {
    what: "a data stream whose handlers hang until it is dead-lettered",
    plan: plan({
      streams: [["s1", "hangs"]],
      settings: { maxFailures: 1 },
      before: (client) => writeOne(client, "s1"),
      produce: (client) => announce(client, "s1"),
      handle: (lease, client) => noted(lease, client, Effect.never),
      second: [0, Infinity],
      last: "1-0",
      finishes: true,
      duration: "10 seconds",
      vary: lostRequests
    })
  },
  twice: {
    what: "two consumers of one data stream that is announced twice",
    plan: plan({
      streams: [["s1", "none"]],
      before: (client) => writeOne(client, "s1"),
      produce: (client) => Effect.andThen(announce(client, "s1"), repeatAnnouncement(client, "s1")),
      handle: (lease, client) =>
        noted(lease, client, Effect.andThen(Effect.sleep("300 millis"), processOne(lease, client, true))),
      second: [0, Infinity],
      last: "1-0",
      finishes: true,
      vary: lostRequests
    })
  },
  go: {
    what: "a consumer and a Go consumer whose renewals are late",
    plan: plan({
      streams: [["s1", "none"], ["s2", "none"]],
      settings: { go: 1, capacity: 1 },
      // Consumer c2 has capacity for only one data stream, so the Go consumer gets the other
      before: (client) =>
        Effect.gen(function*() {
          for (const stream of ["s2", "s1"]) yield* writeOne(client, stream)
          yield* announce(client, "s2")
        }),
      produce: (client) => Effect.andThen(Effect.sleep("100 millis"), announce(client, "s1")),
      handle: (lease, client) =>
        noted(lease, client, Effect.andThen(Effect.sleep("400 millis"), processOne(lease, client, true))),
      second: [0, Infinity],
      last: "1-0",
      finishes: true,
      duration: "10 seconds",
      vary: {
        kills: false,
        delays: [1500, 2100],
        where: ({ args, at, client }) => client === "c1" && at === "request" && args[0]?.startsWith("EVAL") === true
      }
    })
  },
  ended: {
    what: "a data stream that is done, announced again, and deleted",
    plan: plan({
      streams: [["s1", "none"]],
      before: (client) => writeOne(client, "s1"),
      produce: (client) =>
        Effect.gen(function*() {
          yield* announce(client, "s1")
          yield* until("s1", "1-0")
          yield* repeatAnnouncement(client, "s1")
        }),
      // The first handler commits without `isLast`, but the data stream is done when the handler returns
      handle: (lease, client, settings) => processOrAwait(lease, client, settings),
      second: [0, Infinity],
      last: "1-0",
      duration: "2 seconds",
      vary: lostRequests
    })
  }
}
