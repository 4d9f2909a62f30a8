/** The cases in the `texts` area: the decoders of everything that a process reads from Redis. */
import type { Exit, Schema } from "effect"
import { reader } from "../../src/internal/client/decode.ts"
import * as messages from "../../src/internal/mutex/messages.ts"
import * as mutexReplies from "../../src/internal/mutex/replies.ts"
import * as mutexScripts from "../../src/internal/mutex/scripts.generated.ts"
import * as streamMessages from "../../src/streams/internal/messages.ts"
import { Member, PendingReply } from "../../src/streams/internal/replies.ts"
import * as streamScripts from "../../src/streams/internal/scripts.generated.ts"
import { type Draw, mutated, pick } from "./input.ts"

const codec = <T, E>(schema: Schema.Codec<T, E>) => reader("a fuzzed text", schema)

type Read = (input: unknown) => Exit.Exit<unknown, unknown>

const id = "7-abcdef012345:4711@host"
const ownership = `${id}@@2000`
const entry = "1763733691000-0"

/** The readers, each with inputs that it accepts. */
export const readers: ReadonlyArray<readonly [name: string, read: Read, valid: ReadonlyArray<unknown>]> = [
  ["an acquire", mutexReplies.readAcquire, [
    "1763733691000001",
    [ownership, 0, 0, 0],
    [ownership, 0, 3, 1],
    [ownership, 1763733691000001, 0, 0, 0, 7]
  ]],
  ["a release", mutexReplies.readRelease, [1, [ownership, 1763733691000001, "5"], [
    ownership,
    1763733691000001,
    0,
    0,
    7
  ]]],
  ["an inspection", mutexReplies.readInspect, [[ownership, "5", "2", [[id, "7"]]]]],
  ["a renewal", codec(mutexScripts.renewLeases.reply), [[[1, "owner", ownership], [2, "error", "ERR"]], []]],
  ["an owner", codec(mutexScripts.readOwner.reply), [ownership, "@@"]],
  ["a mutex message", codec(messages.MutexMessage), [`acquired@@${id}`]],
  ["a contender message", codec(messages.ContenderMessage), [`released@@${id}`, "look@@500"]],
  ["a layer message", messages.readInboxMessage, [
    "7@@granted@@5@@4@@7",
    "7@@granted@@1763733691000001@@1@@15000",
    "7@@look@@500",
    `forced@@${id}`
  ]],
  ["a checkpoint", codec(streamMessages.Checkpoint), [entry, `${entry}@@${entry}`, `${entry}@@@@7`]],
  ["an announcement", codec(streamMessages.Announcement), [
    JSON.stringify({ DataStreamName: "a", Info: { n: 1 } }),
    JSON.stringify({ datastreamname: "a", info: null })
  ]],
  ["entries", codec(streamMessages.Entries), [[[entry, ["a", "b"]], [entry, []]]]],
  ["a read", codec(streamMessages.ReadReply), [[["s", [[entry, ["a", "b"]]]]], ["s", [[entry, ["a", "b"]]]], null]],
  ["a signal", codec(streamMessages.SignalMessage), [`released@@${entry}@@s`, "given@@abcdef012345"]],
  ["a hand-over", codec(streamMessages.HandOver), [
    `abcdef012345@@abcdef012345.1@@5@@${entry}@@simba-consumer-a@@s`
  ]],
  ["a member", codec(Member), ["simba-consumer-a@@abcdef012345@@8@@3"]],
  ["extents", codec(streamScripts.readExtents.reply), [[[]], [["5", entry, "", "", entry], ["error", "ERR"]]]],
  ["a take", codec(streamScripts.takeLeases.reply), [[["Taken", "5", "0"], ["Occupied", "a", "-1"], ["Gone"]]]],
  ["a stream renewal", codec(streamScripts.renewLeases.reply), [[[1, "TakenOver"], [2, "Vanished"]]]],
  ["pending entries", codec(PendingReply), [[[entry, "anybody", 5, 1]]]],
  ["an announcement reply", codec(streamScripts.announceStreams.reply), [[[entry, "1"]]]],
  ["a stream inspection", codec(streamScripts.inspectService.reply), [
    [1, 2, 3, 4, [["a", 1, 2]], ["simba-consumer-a@@abcdef012345@@8@@3"]]
  ]]
]

export const anyCase = (draw: Draw) => {
  const [name, read, valid] = pick(draw, readers)
  const input = mutated(draw, pick(draw, valid))
  return { name, input, run: () => read(input) }
}
