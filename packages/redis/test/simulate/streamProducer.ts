/**
 * The producer in data-stream simulations. It announces data streams, writes their messages, and deletes data streams
 * once they have been read.
 */
import { StreamClient } from "@effect-simba/core/streams"
import type { Simulation } from "@effect-simba/testkit"
import { Duration, Effect, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"
import { offsets } from "./streamHandler.ts"
import { draftId, draftsOver, insisting, optionsOf, service, type Settings, tools, usesOf } from "./streamSettings.ts"

/** Adds a draft unless the drafts have ended. KEYS: stream, mark. ARGV: the draft's id. */
const appendDraft = `
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.pcall('XADD', KEYS[1], ARGV[1], 'n', '0')
end
return 1
`

/**
 * Ends the drafts. Deletes the data stream if it had any, because their ids are larger than message ids, and a data
 * stream's last id survives a trim. KEYS: stream, mark. ARGV: an id below all drafts.
 */
const endDrafts = `
redis.call('SET', KEYS[2], '1', 'PX', '600000')
local info = redis.pcall('XINFO', 'STREAM', KEYS[1])
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' and tonumber(string.match(info[i + 1], '^%d+')) > tonumber(string.match(ARGV[1], '^%d+')) then
    redis.call('DEL', KEYS[1])
  end
end
return 1
`

/**
 * Writes the client's data streams from their first message to their last. A restarted process starts over, which is
 * harmless because message ids are fixed.
 */
export const produce = (client: Simulation.Client, settings: Settings) => {
  const { note } = client
  const { between, calm, chance, pause } = tools(client)
  const send = (...args: readonly [command: string, ...args: ReadonlyArray<string>]) =>
    Redis.use((redis) => redis.send(...args))

  const insist = insisting(client)
  const uses = usesOf(settings)

  const append = (stream: string, n: number) => {
    const fields = n % settings.messages === 0
      ? ["n", String(n), "end", "true"]
      : settings.malformed && n % 5 === 3
      ? ["rubbish", String(n)]
      : ["n", String(n)]
    return insist(Effect.catchIf(
      send("XADD", stream, `${n}-0`, ...fields),
      // Either the message already exists, or a surviving message has a larger id
      (error) => String(error.cause).includes("equal or smaller"),
      () => Effect.void
    ))
  }

  const announce = (stream: string) =>
    Effect.andThen(
      insist(StreamClient.announce(stream, { by: client.name })),
      Effect.sync(() => note("announced", { resource: stream }))
    )

  const position = (stream: string) =>
    settings.ownOffsets || uses.after ? offsets(client).read(stream) : insist(send("GET", settings.checkpoint(stream)))

  /** Deletes a data stream once it has been read to the end, which ends redundant announcements too. */
  const remove = (stream: string) =>
    position(stream).pipe(
      Effect.repeat({
        schedule: Schedule.spaced("1 second"),
        until: (id) => String(id).startsWith(`${settings.rounds * settings.messages}-0`)
      }),
      Effect.andThen(insist(send("DEL", stream)))
    )

  const announceRaw = (text: string) =>
    Effect.ignore(send("XADD", `${settings.service ?? service}-input`, "*", "lbs-input", text))

  /** Writes and deletes drafts, whose ids are larger than all other messages' ids. Late requests have no effect. */
  const drafts = (stream: string) =>
    Effect.gen(function*() {
      for (let n = 1; n <= 4; n++) {
        yield* insist(send("EVAL", appendDraft, "2", stream, draftsOver(stream), draftId(n)))
        yield* pause(0, settings.rest)
      }
      yield* pause(0, 2000)
      yield* insist(send("EVAL", endDrafts, "2", stream, draftsOver(stream), draftId(0)))
    })

  /** Deletes a random message, or trims all messages up to it. Never picks a round's last message. */
  const deleteSome = (stream: string, written: number) =>
    Effect.suspend(() => {
      const n = Math.ceil(between(0, written))
      if (n % settings.messages === 0) return Effect.void
      return Effect.ignore(
        chance(0.5) ? send("XDEL", stream, `${n}-0`) : send("XTRIM", stream, "MINID", `${n + 1}-0`)
      )
    })

  const one = (stream: string) =>
    Effect.gen(function*() {
      const { messages, rounds } = settings
      for (let round = 1; round <= rounds; round++) {
        note("expects", { resource: stream, message: `${round * messages}-0` })
        const early = chance(0.7)
        yield* pause(0, settings.hasty && round > 1 ? 50 : 3000)
        if (early && round === 1) yield* announce(stream)
        if (uses.drafts) yield* drafts(stream)
        for (let n = 1; n <= messages; n++) {
          yield* append(stream, (round - 1) * messages + n)
          // Announce after the first new message, because a repeated announcement has no effect without one
          if (early && round > 1 && n === 1) yield* announce(stream)
          yield* pause(0, settings.rest)
          if (chance(settings.duplicates / messages)) yield* announce(stream)
          if (chance(settings.duplicates / messages)) {
            yield* announceRaw(JSON.stringify({ DataStreamName: stream, Info: {} }))
          }
          if (settings.malformed && chance(0.2 / messages)) yield* announceRaw("{")
          if (uses.deletes > 0 && chance(uses.deletes)) yield* deleteSome(stream, n)
        }
        if (!early) yield* announce(stream)
      }
      yield* calm
      yield* Effect.sleep(Duration.millis(4000 + between(0, 500)))
      for (let n = 1; settings.repeats && n <= rounds * messages; n++) {
        yield* append(stream, n)
        if (n % messages === 0) yield* announce(stream)
      }
      // An operator may have died after moving the checkpoint but before announcing the data stream
      if (uses.seeks) yield* announce(stream)
      // A rewritten data stream is read from its beginning. Until then, the old checkpoint looks like the end.
      if (settings.repeats) yield* Effect.sleep("5 seconds")
      yield* remove(stream)
    })

  const mine = [...settings.streams.keys()].filter((_, index) =>
    index % settings.consumers === client.index - settings.go
  )
  return Effect.forEach(mine, one, { concurrency: "unbounded", discard: true }).pipe(
    Effect.provide(StreamClient.layer({ ...optionsOf(client, settings, 0), processName: `${client.name}-producer` }))
  )
}
