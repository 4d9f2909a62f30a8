/**
 * Tests that each checker for what operators and producers do with data streams finds its violation, and none in a
 * correct history.
 */
import type { StreamChecker } from "@effect-simba/testkit/streams"
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Redis } from "effect/persistence/Redis"
import * as operations from "../../src/streams/internal/checkers/operations.ts"
import * as ownership from "../../src/streams/internal/checkers/ownership.ts"
import * as progress from "../../src/streams/internal/checkers/progress.ts"
import * as history from "../support/streamHistory.ts"
import { accepts, type Client, commit, finds, message, send } from "../support/streamHistory.ts"

const model: StreamChecker.Model = {
  ...history.model,
  paused: "paused",
  isDraft: (id) => id.startsWith("100"),
  keyOf: (id) => String(Number.parseInt(id) % 2),
  sought: (args) => args[0] === "SET" && args[3] === "XX" ? "s" : undefined,
  trimmed: (args) => args[0] === "XTRIM" ? args[1] : undefined,
  isUndecodable: (fields) => fields.includes("rubbish")
}

const all = (...commands: ReadonlyArray<Effect.Effect<void, unknown, Redis>>) => Effect.all(commands, { discard: true })
const messages = all(message("1-0"), message("2-0"), message("3-0"))
/** Moves the checkpoint, like an operator. */
const seek = (id: string) => send("SET", "checkpoint:s", id, "XX")
const noted = ({ note }: Client, kind: string, fields: NonNullable<Parameters<Client["note"]>[1]>) =>
  Effect.sync(() => note(kind, { resource: "s", id: "s#1", ...fields }))
const processed = (client: Client, id: string) => noted(client, "processed", { message: id })

describe("checkers for seeks and drafts", () => {
  const grow = progress.checkpointsGrow(model)
  const upTo = (client: Client, id: string) =>
    all(messages, processed(client, "1-0"), processed(client, "2-0"), commit(id))

  it.effect("accepts an operator moving a checkpoint back or forward", () =>
    accepts(grow, (client) => all(upTo(client, "2-0"), seek("1-0"), seek("3-0"))))

  it.effect("finds messages that are not processed again after a seek back", () =>
    finds(
      grow,
      /^s is committed up to 2-0, and 1-0 was not processed/,
      (client) => all(upTo(client, "2-0"), seek("0-0"), processed(client, "2-0"), commit("2-0"))
    ))

  it.effect("ignores a draft's checkpoint, and expects all messages from the beginning", () =>
    Effect.gen(function*() {
      const rewritten = all(message("1001-0"), commit("1001-0"), send("DEL", "s"))
      yield* accepts(grow, (client) => all(rewritten, commit("0-0"), upTo(client, "2-0")))
      yield* finds(
        grow,
        /committed up to 2-0, and 1-0 was not processed/,
        (client) => all(rewritten, commit("0-0"), messages, processed(client, "2-0"), commit("2-0"))
      )
    }))

  it.effect("does not apply a seek to an owner that started before the seek", () =>
    accepts(progress.messagesInOrder(model), (client) =>
      all(
        messages,
        commit("2-0"),
        noted(client, "begin", {}),
        seek("0-0"),
        processed(client, "1-0")
      )))
})

describe("checkers for concurrent messages", () => {
  const checker = progress.messagesInOrder(model)
  const run = (...ids: ReadonlyArray<string>) => (client: Client) =>
    all(
      messages,
      message("4-0"),
      noted(client, "begin", {}),
      ...ids.map((id) => noted(client, "processed", { message: id, key: String(Number.parseInt(id) % 2) }))
    )

  it.effect("accepts any order that preserves the order within each key", () =>
    accepts(checker, run("2-0", "4-0", "1-0", "3-0")))

  it.effect("finds a skipped message within a key", () =>
    finds(checker, /^s#1 processed 3-0, and skipped 1-0/, run("3-0")))

  it.effect("finds messages that are processed twice", () =>
    finds(checker, /^s#1 processed 2-0 again/, run("2-0", "2-0")))
})

describe("deadMessagesAreEarned", () => {
  const checker = operations.deadMessagesAreEarned(model, 2)
  const die = (id: string, ...fields: ReadonlyArray<string>) => send("XADD", "dead:s", "*", "id", id, ...fields)
  const tried = (client: Client, id: string) => noted(client, "tried", { message: id })

  it.effect("finds a message that is dead-lettered too early, not counting another owner's attempts", () =>
    finds(
      checker,
      /^1-0 in s is a dead letter after only 1 of 2 attempts/,
      (client) => all(tried(client, "1-0"), noted(client, "tried", { id: "s#2", message: "1-0" }), die("1-0"))
    ))

  it.effect("finds a message that is dead-lettered twice", () =>
    finds(
      checker,
      /^1-0 in s became a dead letter twice/,
      (client) => all(tried(client, "1-0"), tried(client, "1-0"), die("1-0"), die("1-0"))
    ))

  it.effect("accepts dead letters for malformed messages, and after all attempts", () =>
    accepts(
      checker,
      (client) => all(tried(client, "1-0"), tried(client, "1-0"), die("1-0"), die("2-0", "rubbish", "1"))
    ))
})

describe("gapsAreReported", () => {
  const checker = operations.gapsAreReported(model)
  const gap = (client: Client, missed: number) =>
    noted(client, "gap", { after: "0-0", until: "3-0", reason: "Deleted", missed })
  const trimmed = all(messages, send("XDEL", "s", "1-0", "2-0"))

  it.effect("finds messages that were deleted before they were read but are not reported as a gap", () =>
    finds(
      checker,
      /^1-0 in s was deleted before it was read, but no gap is reported,2-0 in s/,
      () => all(trimmed, commit("3-0"))
    ))

  it.effect("finds a gap with more messages than were deleted", () =>
    finds(
      checker,
      /^3 messages in s are reported as missing, but 2 were deleted/,
      (client) => all(trimmed, gap(client, 3))
    ))

  it.effect.each(
    [
      ["messages within a reported gap", (client: Client) => all(trimmed, gap(client, 2), commit("3-0"))],
      [
        "messages that a previous owner skipped, if the next owner counts them",
        (client: Client) =>
          all(
            trimmed,
            commit("3-0"),
            noted(client, "gap", { after: "3-0", until: "4-0", reason: "Deleted", missed: 2 })
          )
      ],
      ["deleted messages that no owner has passed yet", () => trimmed],
      [
        "messages that were committed before they were deleted",
        () => all(messages, commit("2-0"), send("XDEL", "s", "1-0", "2-0"), commit("3-0"))
      ],
      [
        "messages that were processed before they were deleted",
        (client: Client) =>
          all(
            messages,
            processed(client, "1-0"),
            processed(client, "2-0"),
            send("XDEL", "s", "1-0", "2-0"),
            commit("3-0")
          )
      ],
      [
        "a message that was dead-lettered before it was deleted",
        () => all(messages, send("XADD", "dead:s", "*", "id", "1-0"), send("XDEL", "s", "1-0"), commit("3-0"))
      ],
      [
        "a message that was dead-lettered after it was deleted",
        () => all(messages, send("XDEL", "s", "1-0"), send("XADD", "dead:s", "*", "id", "1-0"), commit("3-0"))
      ],
      [
        "messages that were processed after they were deleted",
        (client: Client) => all(trimmed, processed(client, "1-0"), processed(client, "2-0"), commit("3-0"))
      ],
      [
        "messages that are skipped by an operator's seek",
        () => all(trimmed, commit("0-0"), seek("2-0"), commit("3-0"))
      ],
      ["drafts", () => all(message("1001-0"), send("DEL", "s"), message("1-0"), commit("1-0"))]
    ] as const
  )("accepts %s", ([, program]) => accepts(checker, program))
})

describe("pausedRest", () => {
  const checker = operations.pausedRest(model, 1000)
  const begin =
    (pause: ReadonlyArray<string>, millis: number, last: Effect.Effect<void, unknown, Redis> = Effect.void) =>
    (client: Client) =>
      all(
        send("HSET", "paused", ...pause, "1"),
        Effect.sleep(millis),
        last,
        noted(client, "begin", {})
      )

  it.effect("finds work that starts on a data stream that is paused individually or with its service", () =>
    Effect.gen(function*() {
      yield* finds(checker, /^s#1 started although s is paused/, begin(["s"], 1500))
      yield* finds(checker, /^s#1 started although s is paused/, begin([""], 1500))
    }))

  it.effect("accepts work that starts right after a pause begins or once it has ended, and work on other data streams", () =>
    Effect.gen(function*() {
      yield* accepts(checker, begin(["s"], 500))
      yield* accepts(checker, begin(["s"], 1500, send("HDEL", "paused", "s")))
      yield* accepts(checker, begin(["t"], 1500))
    }))

  it.effect("does not expect consumers to take paused streams", () =>
    accepts(ownership.noOrphans(model, { own: 1000, go: 1000 }, 0), ({ note }) =>
      all(
        send("HSET", "paused", "s", "1"),
        send("XGROUP", "CREATE", "input", "group", "0", "MKSTREAM"),
        send("XADD", "input", "1-0", "stream", "s"),
        Effect.sync(() => note("joined", { consumer: "a", capacity: 1 })),
        Effect.sleep("3 seconds")
      )))
})

describe("onlyReadIsTrimmed", () => {
  const checker = operations.onlyReadIsTrimmed(model)

  it.effect("finds messages that are trimmed after the checkpoint", () =>
    Effect.gen(function*() {
      const trim = send("XTRIM", "s", "MINID", "3-0")
      yield* finds(checker, /^2-0 in s was trimmed, but s is only committed up to 1-0/, () =>
        all(messages, commit("1-0"), trim))
      yield* finds(checker, /^1-0 in s was trimmed, but s is only committed up to its beginning/, () =>
        all(messages, trim))
    }))

  it.effect("accepts the trimming of processed messages", () =>
    accepts(checker, () => all(messages, commit("2-0"), send("XTRIM", "s", "MINID", "3-0"))))
})
