/** The state and the operations shared by all parts of a stream client. Created by `client`. */
import type * as Effect from "effect/Effect"
import type { Recorder } from "../../internal/lease/metricsRecorder.ts"
import type { LeaseLost, StoreError } from "../../SimbaError.ts"
import type { Member, Service } from "../StreamStore.ts"
import type { StreamConfig } from "./config.ts"
import type { LeaseEnds } from "./leaseEnds.ts"
import type { OwnedStream } from "./ownedStream.ts"
import type { Pauses } from "./pauses.ts"
import type { StreamTable } from "./streamTable.ts"

export interface ClientContext {
  readonly config: StreamConfig
  readonly store: Service
  readonly metrics: Recorder
  readonly table: StreamTable
  readonly ends: LeaseEnds
  /** Implements `StreamLease.done`. Interrupts and awaits the handler first, unless the handler is the caller. */
  readonly done: (owned: OwnedStream) => Effect.Effect<void, LeaseLost | StoreError>
  /** Implements `StreamLease.release`. Like `done`, but leaves the unfinished data stream to other members. */
  readonly release: (owned: OwnedStream) => Effect.Effect<void, LeaseLost | StoreError>
  readonly pauses: Pauses
  /**
   * The fleet's members, from the reply to the last heartbeat. Empty before the first reply, and if `rebalance` is
   * false.
   */
  members: ReadonlyArray<Member>
  /** This client's random id, which is the first part of its epochs. */
  readonly session: string
}

/** Starts the handler of a newly owned data stream, or pushes a notification. */
export type Deliver = (owned: OwnedStream) => void
