/**
 * The operator in data-stream simulations. It moves checkpoints, pauses and resumes, and removes processed messages.
 */
import { StreamClient } from "@effect-simba/core/streams"
import type { Simulation } from "@effect-simba/testkit"
import { Effect } from "effect"
import { insisting, optionsOf, type Settings, tools, usesOf } from "./streamSettings.ts"

export const operate = (client: Simulation.Client, settings: Settings) => {
  const { note } = client
  const { between, calm, chance, pause } = tools(client)
  const insist = insisting(client)
  const uses = usesOf(settings)
  const names = [...settings.streams.keys()]
  const pick = <A>(items: ReadonlyArray<A>) => items[Math.floor(between(0, items.length))]!

  /**
   * Moves a checkpoint and announces the data stream again, because it may be finished. The new position always leaves
   * messages to read, because a reader beyond the last message would wait forever.
   */
  const seek = Effect.gen(function*() {
    const stream = pick(names)
    const to = chance(0.2) ? "beginning" : `${Math.ceil(between(0, settings.messages))}-0`
    const moved = yield* Effect.result(StreamClient.seek(stream, to, { force: chance(0.7) }))
    if (moved._tag === "Success" || moved.failure._tag === "BackendError") {
      yield* insist(StreamClient.announce(stream))
      note("announced", { resource: stream })
    }
  })

  const interrupt = Effect.gen(function*() {
    const stream = chance(0.3) ? undefined : pick(names)
    yield* Effect.ignore(StreamClient.pause(stream))
    yield* pause(500, 6000)
    yield* Effect.ignore(StreamClient.resume(stream))
  })

  const trim = Effect.suspend(() => Effect.ignore(StreamClient.trim(pick(names))))

  const works = [uses.seeks ? [seek] : [], uses.pauses ? [interrupt] : [], uses.trims ? [trim] : []].flat()

  /** Resumes everything, including what was paused by operators that have died. */
  const resumeAll = insist(Effect.gen(function*() {
    const { paused } = yield* StreamClient.inspect
    if (paused.service) yield* StreamClient.resume()
    yield* Effect.forEach(paused.streams, (stream) => StreamClient.resume(stream), { discard: true })
  }))

  const busy = Effect.suspend(() => {
    if (client.phase() !== "safety") return Effect.never
    return Effect.andThen(pause(500, 4000), Effect.suspend(() => pick(works)))
  })
  return works.length === 0
    ? Effect.void
    : Effect.raceFirst(Effect.forever(busy), calm).pipe(
      // A recent request may still be in flight
      Effect.andThen(Effect.sleep("3 seconds")),
      Effect.andThen(uses.pauses ? resumeAll : Effect.void),
      Effect.provide(StreamClient.layer({ ...optionsOf(client, settings, 0), processName: `${client.name}-operator` }))
    )
}
