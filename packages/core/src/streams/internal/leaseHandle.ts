/**
 * Implements `StreamLease`, a handler's operations on its data stream. `ownedStream` contains the state.
 * `handlerRunner` and `client` create the handles.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { LeaseHandle } from "../../internal/lease/leaseHandle.ts"
import type { LeaseLost, StoreError } from "../../SimbaError.ts"
import { StreamYielded } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { ClientContext } from "./context.ts"
import type { OwnedStream } from "./ownedStream.ts"

export class LeaseImpl extends LeaseHandle<OwnedStream> implements StreamLease {
  private readonly client: ClientContext

  constructor(client: ClientContext, owned: OwnedStream) {
    super(client.table, owned)
    this.client = client
  }

  get stream() {
    return this.lease.stream
  }

  get entry() {
    return this.lease.entry
  }

  get info() {
    return this.lease.info
  }

  get failures() {
    return this.lease.failures
  }

  get checkpointRetention() {
    return this.client.config.checkpointRetention
  }

  override get lost(): Effect.Effect<LeaseLost> {
    // A lease that ended normally is never lost
    return Effect.filterOrElse(super.lost, () => this.lease.loss !== undefined, () => Effect.never)
  }

  get revoked() {
    const { lease: owned } = this
    // Even if the revocation has been withdrawn by now, the handler may still yield because of it
    return Effect.map(owned.revoked, () => {
      if (owned.isRevoked) owned.hasHeard = true
      else owned.isKept = true
    })
  }

  get isRevoked() {
    return Effect.sync(() => {
      if (this.lease.isRevoked) this.lease.hasHeard = true
      return this.lease.isRevoked
    })
  }

  get yield() {
    return Effect.suspend(() => Effect.fail(new StreamYielded({ stream: this.lease.stream })))
  }

  get done() {
    return this.client.done(this.lease)
  }

  get release() {
    return this.client.release(this.lease)
  }

  get progress() {
    return Effect.sync(() => {
      this.progressed()
      if (this.lease.failures > 0) this.lease.hasProgressed = true
    })
  }

  /** Restarts the progress timeout. Does not reset the failure count, because nothing was committed. */
  get advance() {
    return Effect.sync(() => this.progressed())
  }

  get checkpoint() {
    return Effect.suspend(() => this.client.store.checkpoint(this.lease.stream))
  }

  get end() {
    return Effect.suspend(() => this.client.store.end(this.lease))
  }

  get extent() {
    return Effect.suspend(() => this.client.store.extent(this.lease.stream))
  }

  readonly count: StreamLease["count"] = (after, last) =>
    Effect.suspend(() => this.client.store.count(this.lease.stream, after, last))

  readonly commit: StreamLease["commit"] = (id, options) =>
    this.committing(() => this.client.store.commit(this.lease, id, options?.isLast, options?.offset))

  readonly seek: StreamLease["seek"] = (to) =>
    this.committing(() =>
      Effect.flatMap(
        this.checkpoint,
        (from) =>
          this.client.store.seek(this.lease.stream, to, { owner: this.lease, from: Option.getOrUndefined(from)?.id })
      ).pipe(Effect.repeat({ until: (reply) => reply !== "Changed" }))
    )

  readonly deadLetter: StreamLease["deadLetter"] = (message, reason) =>
    this.committing(() => this.client.store.deadLetterMessage(this.lease, message, reason))

  readonly messagesAfter: StreamLease["messagesAfter"] = (after, count) =>
    Effect.andThen(
      this.ensure,
      // After an interruption between the increment and the finalizer, this reader would be counted as waiting forever
      Effect.uninterruptibleMask((restore) => {
        const { client, lease: owned } = this
        owned.waiting++
        owned.hasRead = true
        const ended = Effect.flatMap(owned.ended, () => Effect.fail(owned.over))
        return Effect.ensuring(
          restore(Effect.raceFirst(client.store.awaitMessages(owned.stream, after, count), ended)),
          Effect.sync(() => {
            owned.waiting--
            this.progressed()
            // The progress timeout starts now, because time spent waiting does not count
            client.table.watch(owned)
          })
        )
      })
    )

  /**
   * Processes one message. During this work, the handler counts as busy and must make progress, even if its loop
   * is waiting for other messages.
   */
  readonly inHand = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.uninterruptibleMask((restore) => {
      const { client, lease: owned } = this
      // No handler was working before
      if (owned.inHand++ === owned.pausing) {
        this.progressed()
        client.table.watch(owned)
      }
      return Effect.ensuring(restore(work), Effect.sync(() => owned.inHand--))
    })

  /** Waits between two attempts at a message, then restarts the progress timeout. */
  readonly pausing = <A, E, R>(pause: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.uninterruptibleMask((restore) => {
      const { client, lease: owned } = this
      owned.pausing++
      return Effect.ensuring(
        restore(pause),
        Effect.sync(() => {
          owned.pausing--
          this.progressed()
          client.table.watch(owned)
        })
      )
    })

  override toJSON() {
    const { entry, stream, token } = this.lease
    return { stream, entry, token, timeLeft: this.shownTimeLeft }
  }

  private progressed(): void {
    if (this.lease.progressedAt !== undefined) this.lease.progressedAt = this.client.table.now().monotonic
  }

  private committing(
    call: () => Effect.Effect<string, StoreError>
  ): Effect.Effect<void, LeaseLost | StoreError> {
    return this.ensure.pipe(
      Effect.andThen(call),
      Effect.flatMap((reply) => {
        if (reply === "NotOwner") return this.client.ends.refused(this.lease)
        // The backend has reset its count too
        if (reply === "Committed") this.lease.failures = 0
        this.progressed()
        return Effect.void
      })
    )
  }
}
