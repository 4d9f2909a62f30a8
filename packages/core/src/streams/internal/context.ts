/** What the parts of one client share. */
import type * as Clock from "effect/Clock"
import type { Recorder } from "../../internal/lease/metricsRecorder.ts"
import type { StreamConfig } from "../StreamConfig.ts"
import type { Epoch } from "../StreamName.ts"
import type { Service } from "../StreamStore.ts"
import type { Completion } from "./completion.ts"
import type { OwnedStream } from "./ownedStream.ts"
import type { StreamTable } from "./streamTable.ts"

export interface ClientContext {
  readonly clock: Clock.Clock
  readonly config: StreamConfig
  readonly store: Service
  readonly meter: Recorder
  readonly table: StreamTable
  readonly ending: Completion
  /** Random and new for each client: the first part of its epochs. */
  readonly session: string
  readonly nextEpoch: () => Epoch
}

/** What becomes of a data stream that came to be owned: its handler starts, or somebody is notified. */
export type Deliver = (owned: OwnedStream) => void
