/** The settings of data-stream simulations, and helpers for producers, consumers and operators. */
import type { Simulation } from "@effect-simba/testkit"
import { Duration, Effect, Schedule, Schema } from "effect"

export const service = "orders"

export const maxFailures = 6

/** The periods used by effect-simba consumers, in milliseconds. */
export interface Pace {
  readonly leaseDuration: number
  readonly heartbeatInterval: number
  readonly sweepInterval: number
  readonly confirmTimeout: number
}

/** How a data stream's handler misbehaves. A `curable` handler fails until `cure` is called. */
export type Ailment = "none" | "fails" | "hangs" | "slow" | "poison" | "curable"

/**
 * The optional features used by a fleet.
 *
 * - `handling`: messages one by one, concurrently but in order per key, or in batches.
 * - `attempts`: attempts for a message before it is dead-lettered.
 * - `after`: whether the handler stores its offsets in an external system, and passes them as the `after` option.
 * - `seeks`, `pauses`, `trims`: whether operators move checkpoints, pause and resume, or remove processed messages.
 * - `deletes`: fraction of messages that are deleted, whether read or not, between 0 and 1.
 * - `drafts`: whether each data stream first contains messages with larger ids, and is then deleted and rewritten.
 */
export interface Uses {
  readonly handling: "one" | "several" | "batches"
  readonly attempts: number
  readonly after: boolean
  readonly seeks: boolean
  readonly pauses: boolean
  readonly trims: boolean
  readonly deletes: number
  readonly drafts: boolean
}

export const plainUses: Uses = {
  handling: "one",
  attempts: Infinity,
  after: false,
  seeks: false,
  pauses: false,
  trims: false,
  deletes: 0,
  drafts: false
}

/** A message's key. Messages with the same key are processed in order. */
export const keyOf = (message: string) => String(Number.parseInt(message) % 3)

/** Drafts have larger ids than all other messages. */
const draftBase = 1_000_000

export const draftId = (n: number) => `${draftBase + n}-0`

export const isDraft = (message: string) => Number.parseInt(message) > draftBase

/** This key exists once a data stream's drafts have ended. */
export const draftsOver = (stream: string) => `drafts-over:${stream}`

/**
 * - `streams`: how each data stream's handler misbehaves, by name. `messages`: messages per data stream and round.
 *   `rounds`: number of times that each data stream is announced, written and finished.
 * - `go`: number of clients that are Go consumers, which are the first ones. `consumers`: number of the other clients,
 *   which run effect-simba.
 * - `stays`: maximum length of a consumer's session, in milliseconds. `freshIds`: whether each session has its own id.
 * - `late`: maximum delay before a consumer first joins, in milliseconds.
 * - `rest`: a producer's maximum pause between two messages, in milliseconds. `work`: maximum time per message, in
 *   milliseconds.
 * - `computes`: maximum CPU time per message, in milliseconds. It takes virtual time only under the `processor` fault.
 * - `service`: the service's name. Default: `orders`. `maxFailures` defaults to 6.
 * - `unrenewed`: fraction of the Go consumers' claims that are never renewed, between 0 and 1.
 * - `duplicates`: expected number of repeated announcements per round. `malformed`: whether some entries are malformed.
 * - `hasty`: whether a round starts while the end of the previous one is still being processed. `repeats`: whether
 *   everything is written and announced again after the faults, because it may have been lost.
 * - `ownOffsets`: whether handlers store their offsets in an external system, which checks tokens, instead of
 *   committing.
 * - `goWork`: maximum time that a Go consumer works on a data stream, in milliseconds.
 */
export interface Settings {
  readonly maxFailures?: number
  readonly service?: string
  readonly streams: ReadonlyMap<string, Ailment>
  readonly messages: number
  readonly rounds: number
  readonly go: number
  readonly consumers: number
  readonly capacity: number
  readonly pace: Pace
  readonly late: number
  readonly balance: boolean
  readonly enableEvents: boolean
  readonly grace: number
  readonly commitEvery: number
  readonly stays: number
  readonly freshIds: boolean
  readonly reapAfter: number
  readonly rest: number
  readonly work: number
  readonly duplicates: number
  readonly malformed: boolean
  readonly hasty: boolean
  readonly repeats: boolean
  readonly ownOffsets: boolean
  readonly goWork: number
  readonly fenced: boolean
  readonly deadLetterAfter: number
  /** Returns a data stream's checkpoint key. */
  readonly checkpoint: (stream: string) => string
  readonly unrenewed: number
  readonly computes: number
  /** The optional features used by the fleet. Default: `plainUses`. */
  readonly uses?: Uses | undefined
}

export const Order = Schema.Struct({ n: Schema.FiniteFromString, end: Schema.optionalKey(Schema.Literal("true")) })

export const decodeOrder = Schema.decodeUnknownOption(Order)

/** Retries soon, so that poison is dead-lettered during the simulation. */
export const retry = Schedule.spaced("300 millis")

export const tools = ({ phase, random }: Simulation.Client) => {
  const between = (low: number, high: number) => low + (high - low) * random()
  return {
    between,
    pause: (low: number, high: number) => Effect.suspend(() => Effect.sleep(Duration.millis(between(low, high)))),
    chance: (probability: number) => random() < probability,
    calm: Effect.suspend(() => Effect.sleep("500 millis")).pipe(Effect.repeat({ until: () => phase() === "liveness" }))
  }
}

export const usesOf = ({ uses = plainUses }: Settings): Uses => uses

export const optionsOf = (client: Simulation.Client, settings: Settings, session: number) => ({
  service: settings.service ?? service,
  processName: settings.freshIds ? `${client.name}.${client.generation}.${session}` : client.name,
  capacity: settings.capacity,
  ...settings.pace,
  gracePeriod: settings.grace,
  maxFailures: settings.maxFailures ?? maxFailures,
  deadLetterAfter: settings.deadLetterAfter,
  rebalance: settings.balance,
  enableEvents: settings.enableEvents,
  reapAfter: settings.reapAfter,
  progressTimeout: [...settings.streams.values()].includes("hangs") ? "3 seconds" as const : undefined
})

/** Retries an effect until it succeeds. */
export const insisting = (client: Simulation.Client) => {
  const insist = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, never, R> =>
    Effect.catch(effect, () => Effect.andThen(tools(client).pause(100, 400), insist(effect)))
  return insist
}
