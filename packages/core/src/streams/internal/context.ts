/** The context that all parts of one client share. */
import type * as Clock from "effect/Clock"
import type { Recorder } from "../../internal/lease/metricsRecorder.ts"
import type { Epoch } from "../StreamName.ts"
import type { Service } from "../StreamStore.ts"
import type { Completion } from "./completion.ts"
import type { StreamConfig } from "./config.ts"
import type { OwnedStream } from "./ownedStream.ts"
import type { StreamTable } from "./streamTable.ts"

export interface ClientContext {
  readonly clock: Clock.Clock
  readonly config: StreamConfig
  readonly store: Service
  readonly metrics: Recorder
  readonly table: StreamTable
  readonly completion: Completion
  /** Random and new for each client: the first part of its epochs. */
  readonly session: string
  readonly nextEpoch: () => Epoch
}

/** Starts the handler of a new owned stream, or notifies its reader. */
export type Deliver = (owned: OwnedStream) => void
