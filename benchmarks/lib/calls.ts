/** The types of the requests that the suite sends to the contestants' processes, and of their replies. */
import type { Connect, Contended, ContendRequest, Pairs, PairsRequest, Stance } from "./contestant.ts"
import type { Profiled } from "./profiler.ts"

/** The resources that a process used between two instants. */
export interface Spent {
  readonly millis: number
  readonly cpuMillis: number
  /** The longest stall of the event loop, minus the millisecond between two checks. 0 if not requested. */
  readonly stallMillis: number
}

/** Requests and replies by call name. */
export interface Calls {
  readonly connect: readonly [Connect, void]
  readonly disconnect: readonly [void, void]
  readonly pairs: readonly [PairsRequest, Pairs & Spent]
  readonly contend: readonly [ContendRequest, void]
  readonly first: readonly [void, number]
  readonly taken: readonly [void, Contended]
  readonly grantedElsewhere: readonly [void, void]
  readonly stopContending: readonly [void, void]
  readonly hold: readonly [HoldRequest, void]
  readonly stand: readonly [StandRequest, void]
  readonly letGo: readonly [void, void]
  readonly collectGarbage: readonly [void, void]
  readonly heap: readonly [HoldRequest, { readonly bytes: number }]
  readonly startMeter: readonly [MeterRequest, void]
  readonly readMeter: readonly [void, Spent]
  readonly startProfile: readonly [void, void]
  readonly readProfile: readonly [void, Profiled]
}

export interface HoldRequest {
  readonly prefix: string
  readonly count: number
}

export interface StandRequest extends HoldRequest {
  readonly as: Stance
}

export interface MeterRequest {
  /** Whether to detect stalls. Checking every millisecond takes more CPU time than most of the measured operations. */
  readonly stalls: boolean
}

export type Call = keyof Calls

export interface Asked {
  readonly id: number
  readonly call: Call
  readonly request: unknown
}

/**
 * The id of the only message that is not a reply: it reports that one of the process's contenders was granted a mutex.
 */
export const grantedId = -1

export type Replied =
  | { readonly id: number; readonly reply: unknown }
  | { readonly id: number; readonly error: string }
