/** The context that all parts of one client share. */
import type { Recorder } from "../../internal/lease/metricsRecorder.ts"
import type { Member, Service } from "../StreamStore.ts"
import type { StreamConfig } from "./config.ts"
import type { LeaseEnds } from "./leaseEnds.ts"
import type { OwnedStream } from "./ownedStream.ts"
import type { StreamTable } from "./streamTable.ts"

export interface ClientContext {
  readonly config: StreamConfig
  readonly store: Service
  readonly metrics: Recorder
  readonly table: StreamTable
  readonly ends: LeaseEnds
  /** The members of the fleet, as the last heartbeat told; empty before the first. */
  members: ReadonlyArray<Member>
  /** Random and new for each client: the first part of its epochs. */
  readonly session: string
}

/** Starts the handler of a new owned stream, or notifies its reader. */
export type Deliver = (owned: OwnedStream) => void
