/** What the processes of a simulated fleet of data streams do, and their shared tools. */
import type { Simulation } from "@effect-simba/testkit"
import { Duration, Effect, Schedule, Schema } from "effect"

export const service = "orders"

export const maxFailures = 6

/** Periods of the consumers of effect-simba, in milliseconds. */
export interface Pace {
  readonly leaseDuration: number
  readonly heartbeatInterval: number
  readonly sweepInterval: number
  readonly confirmTimeout: number
}

/** The ailment of the handler of a data stream: none, or one of these. A curable one fails until `cure`. */
export type Ailment = "none" | "fails" | "hangs" | "slow" | "poison" | "curable"

/**
 * What users with external systems, operators and producers do with data streams.
 *
 * - `handling`: messages one by one, several at once in order by key, or in batches.
 * - `attempts`: how often a message is tried before it is a dead letter.
 * - `after`: whether the handler keeps its offsets elsewhere, and reads by the option `after`.
 * - `seeks`, `pauses`, `trims`: whether operators move checkpoints, pause and resume, and remove processed messages.
 * - `deletes`: how many messages are deleted, read or not, between 0 and 1.
 * - `drafts`: whether each data stream has other messages first, with larger ids, is deleted, and written again.
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

/** Messages of the same key are processed in order. */
export const keyOf = (message: string) => String(Number.parseInt(message) % 3)

/** Ids of drafts are larger than all that follow. */
const draftBase = 1_000_000

export const draftId = (n: number) => `${draftBase + n}-0`

export const isDraft = (message: string) => Number.parseInt(message) > draftBase

/** The key that records that a data stream has no drafts any more. */
export const draftsOver = (stream: string) => `drafts-over:${stream}`

/**
 * - `streams`: their ailments, by name. `messages`: how many each has in a round. `rounds`: how often each comes to its
 *   end and is announced again.
 * - `consumers`: how many of the clients, the last ones, run effect-simba; the others are Go consumers.
 * - `stays`: the longest session of a consumer, in milliseconds. `freshIds`: each session has its own id.
 * - `late`: how long a consumer may be missing at first, in milliseconds.
 * - `rest`: the longest pause of a producer between two messages. `work`: the longest time for one message.
 * - `computes`: the longest computation for one message, in milliseconds; it takes time if processors do.
 * - `service`: its name. Default: `orders`.
 * - `unrenewed`: how many claims of Go consumers are never renewed, between 0 and 1.
 * - `duplicates`: how often a producer announces again, between 0 and 1. `malformed`: whether there are malformed
 * entries.
 * - `hasty`: whether the next round starts while the end of the last is being processed. `repeats`: whether everything
 * is written and announced again once faults are over, because it may be lost.
 * - `ownOffsets`: whether handlers commit nothing, and keep their offsets in an external system, which checks tokens.
 * - `goWork`: the longest time for one data stream of a Go consumer.
 */
export interface Settings {
  /** Default: the service of this module. */
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
  /** The key of the checkpoint of a data stream. */
  readonly checkpoint: (stream: string) => string
  readonly unrenewed: number
  readonly computes: number
  /** Default: none of it. */
  readonly uses?: Uses | undefined
}

export const Order = Schema.Struct({ n: Schema.FiniteFromString, end: Schema.optionalKey(Schema.Literal("true")) })

export const decodeOrder = Schema.decodeUnknownOption(Order)

/** Soon, so that poison is found while it is watched. */
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

/** Retries until the backend agrees. */
export const insisting = (client: Simulation.Client) => {
  const insist = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, never, R> =>
    Effect.catch(effect, () => Effect.andThen(tools(client).pause(100, 400), insist(effect)))
  return insist
}
