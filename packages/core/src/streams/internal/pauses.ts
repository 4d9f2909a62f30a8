/**
 * What operators have paused: the whole service or single data streams. `pauseFollower` keeps this up to date, and
 * `leaseTaker` takes nothing that is paused.
 */
import type { StreamName } from "../StreamName.ts"
import type { ServiceState } from "../StreamState.ts"

export class Pauses {
  /** The pauses in the backend's last reply. Before the first reply, nothing counts as paused. */
  private paused: ServiceState["paused"] = { service: false, streams: [] }
  private names: ReadonlySet<StreamName> = new Set()

  /** Replaces the state. Returns whether anything changed. */
  set(paused: ServiceState["paused"]): boolean {
    const isChanged = paused.service !== this.paused.service || paused.streams.length !== this.names.size ||
      paused.streams.some((stream) => !this.names.has(stream))
    this.paused = paused
    this.names = new Set(paused.streams)
    return isChanged
  }

  get isService(): boolean {
    return this.paused.service
  }

  has(stream: StreamName): boolean {
    return this.paused.service || this.names.has(stream)
  }
}
