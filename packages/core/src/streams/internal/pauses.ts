/** What operators have paused. */
import type { StreamName } from "../StreamName.ts"
import type { ServiceState } from "../StreamState.ts"

export class Pauses {
  /** As the backend told last. Nothing is known before the first reply. */
  private paused: ServiceState["paused"] = { service: false, streams: [] }
  private names: ReadonlySet<StreamName> = new Set()

  /** Returns whether it is news. */
  set(paused: ServiceState["paused"]): boolean {
    const isNew = paused.service !== this.paused.service || paused.streams.length !== this.names.size ||
      paused.streams.some((stream) => !this.names.has(stream))
    this.paused = paused
    this.names = new Set(paused.streams)
    return isNew
  }

  get isService(): boolean {
    return this.paused.service
  }

  has(stream: StreamName): boolean {
    return this.paused.service || this.names.has(stream)
  }
}
