/** The `StreamLease` of a handler: what it may ask and do with its data stream. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Handle, timeLeft } from "../../internal/handle.ts"
import type { StoreError } from "../../SimbaError.ts"
import { type StreamLost, StreamYielded } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { Service } from "../StreamStore.ts"
import type { LeaseEnds } from "./leaseEnds.ts"
import type { OwnedStream } from "./ownedStream.ts"
import type { StreamTable } from "./streamTable.ts"

export interface Parts {
  readonly table: StreamTable
  readonly store: Service
  readonly ends: LeaseEnds
}

/** The loss of the lease, if it is over at this instant. */
const over = ({ table }: Parts, owned: OwnedStream): StreamLost | undefined => {
  table.check(owned, table.now())
  return owned.isOpen() ? undefined : owned.loss ?? owned.lossOf("Released")
}

export class LeaseImpl extends Handle implements StreamLease {
  private readonly parts: Parts
  private readonly owned: OwnedStream

  constructor(parts: Parts, owned: OwnedStream) {
    super()
    this.parts = parts
    this.owned = owned
  }

  get stream() {
    return this.owned.stream
  }

  get entry() {
    return this.owned.entry
  }

  get info() {
    return this.owned.info
  }

  get token() {
    return this.owned.token
  }

  get failures() {
    return this.owned.failures
  }

  get isHeld() {
    return Effect.sync(() => over(this.parts, this.owned) === undefined)
  }

  get ensure() {
    return Effect.suspend(() => {
      const loss = over(this.parts, this.owned)
      return loss === undefined ? Effect.void : Effect.fail(loss)
    })
  }

  get timeLeft() {
    return Effect.sync(() =>
      over(this.parts, this.owned) === undefined
        ? Duration.millis(this.owned.left(this.parts.table.now()))
        : Duration.zero
    )
  }

  get lost() {
    return this.owned.onLoss.next(() => {
      over(this.parts, this.owned)
      const { loss, state } = this.owned
      if (loss !== undefined) return Effect.succeed(loss)
      // It ended in order, and is never lost
      return state === "released" ? Effect.never : undefined
    })
  }

  /** Fails at any end: no more messages are read. */
  private get ended() {
    return Effect.andThen(
      this.owned.onEnd.next(() => this.owned.isOpen() ? undefined : Effect.void),
      Effect.suspend(() => Effect.fail(this.owned.loss ?? this.owned.lossOf("Released")))
    )
  }

  get revoked() {
    return this.owned.onRevoked.next(() => this.owned.isRevoked ? Effect.void : undefined)
  }

  get isRevoked() {
    return Effect.sync(() => this.owned.isRevoked)
  }

  get yield() {
    return Effect.suspend(() => Effect.fail(new StreamYielded({ stream: this.owned.stream })))
  }

  get progress() {
    return Effect.sync(() => {
      this.progressed()
      if (this.owned.failures > 0) this.owned.hasProgressed = true
    })
  }

  get checkpoint() {
    return Effect.suspend(() => this.parts.store.checkpoint(this.owned.stream))
  }

  get end() {
    return Effect.suspend(() => this.parts.store.end(this.owned))
  }

  readonly deletedAfter: StreamLease["deletedAfter"] = (after) =>
    Effect.suspend(() => this.parts.store.deletedAfter(this.owned.stream, after))

  readonly commit: StreamLease["commit"] = (id, options) =>
    this.committing(() => this.parts.store.commit(this.owned, id, options?.isLast))

  readonly deadLetter: StreamLease["deadLetter"] = (message, reason) =>
    this.committing(() => this.parts.store.deadLetterMessage(this.owned, message, reason))

  readonly messagesAfter: StreamLease["messagesAfter"] = (after, count) =>
    Effect.suspend(() => {
      const loss = over(this.parts, this.owned)
      if (loss !== undefined) return Effect.fail(loss)
      const { owned, parts } = this
      owned.waiting++
      owned.hasRead = true
      return Effect.raceFirst(parts.store.awaitMessages(owned.stream, after, count), this.ended).pipe(
        Effect.ensuring(Effect.sync(() => {
          owned.waiting--
          this.progressed()
          // Waiting was no lack of progress: the time without any begins now
          parts.table.watch(owned)
        }))
      )
    })

  override toJSON() {
    const { owned, parts } = this
    const { entry, stream, token } = owned
    return { stream, entry, token, timeLeft: timeLeft(owned.isOpen() ? owned.left(parts.table.now()) : 0) }
  }

  private progressed(): void {
    if (this.owned.progressedAt !== undefined) this.owned.progressedAt = this.parts.table.now().monotonic
  }

  private committing(
    call: () => Effect.Effect<"Committed" | "Behind" | "NotOwner", StoreError>
  ): Effect.Effect<void, StreamLost | StoreError> {
    return Effect.suspend(() => {
      const loss = over(this.parts, this.owned)
      if (loss !== undefined) return Effect.fail(loss)
      return Effect.flatMap(call(), (answer) => {
        if (answer === "NotOwner") {
          return Effect.flatMap(this.parts.ends.lossAfterRefusal(this.owned), Effect.fail)
        }
        this.progressed()
        return Effect.void
      })
    })
  }
}
