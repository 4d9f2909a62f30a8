/** A nemesis run's load: mutexes, data streams, and the settings for the simulator's programs that use them. */
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import type { Settings } from "../simulate/behaviour.ts"
import type { Ailment, Settings as StreamSettings } from "../simulate/streamSettings.ts"

export const mutexes = ["a", "b", "c"]

/** The hash tag puts all of the service's keys into one slot, as a Cluster requires. */
export const service = "{orders}"

export interface Load {
  /** The number of times that each data stream is announced, written and finished. */
  readonly rounds: number
}

export const messages = 25

const ailments: ReadonlyArray<Ailment> = ["none", "none", "none", "poison"]
export const streams = new Map(ailments.map((ailment, index) => [`{orders}:s${index + 1}`, ailment]))

export const mutexSettings: Settings = {
  resources: mutexes,
  workers: 2,
  rest: 300,
  patience: 4000,
  contenders: 1,
  holds: 400,
  forces: 0,
  writes: "fenced",
  localTurn: 10,
  countsSubscribers: true,
  coalescing: false,
  crowd: 0,
  computes: 2,
  throws: false
}

/** Long work, so that a lost lease is almost always in use. */
export const longHolds: Settings = { ...mutexSettings, contenders: 0, holds: 6000 }

export const pace = { leaseDuration: 1500, heartbeatInterval: 400, sweepInterval: 1000, confirmTimeout: 700 }

export const streamSettings = ({ rounds }: Load): StreamSettings => ({
  service,
  streams,
  messages,
  rounds,
  go: 0,
  // One producer writes all data streams
  consumers: 1,
  capacity: 8,
  pace,
  late: 0,
  balance: true,
  enableEvents: true,
  grace: 500,
  commitEvery: 1,
  stays: 60_000,
  freshIds: true,
  reapAfter: 60_000,
  rest: 60,
  work: 10,
  duplicates: 0.5,
  malformed: true,
  hasty: false,
  repeats: true,
  ownOffsets: false,
  goWork: 0,
  deadLetterAfter: 0,
  fenced: true,
  unrenewed: 0,
  computes: 2,
  checkpoint: (stream) => StreamKeys.checkpoint(stream as Parameters<typeof StreamKeys.checkpoint>[0])
})

/** A seeded generator of uniform random numbers in [0, 1). */
export const random = (seed: string) => {
  let state = 2166136261
  for (const char of seed) state = Math.imul(state ^ char.charCodeAt(0), 16777619)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
