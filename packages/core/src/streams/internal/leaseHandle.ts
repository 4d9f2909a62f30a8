/**
 * The `StreamLease` of a handler: the operations on its data stream. `handlerRunner` makes it; it reads and changes
 * the `ownedStream`.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { Handle, timeLeft } from "../../internal/handleBase.ts"
import { Containing, remains, settle } from "../../internal/lease/protectedWork.ts"
import type { LeaseLost, StoreError } from "../../SimbaError.ts"
import { StreamYielded } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { ClientContext } from "./context.ts"
import type { OwnedStream } from "./ownedStream.ts"

export class LeaseImpl extends Handle implements StreamLease {
  private readonly client: ClientContext
  private readonly owned: OwnedStream

  constructor(client: ClientContext, owned: OwnedStream) {
    super()
    this.client = client
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

  get checkpointRetention() {
    return this.client.config.checkpointRetention
  }

  get isHeld() {
    return Effect.sync(() => this.client.table.isHeld(this.owned))
  }

  get ensure() {
    return this.client.table.ensure(this.owned)
  }

  get timeLeft() {
    return Effect.sync(() => {
      const now = this.client.table.now()
      return this.client.table.isHeld(this.owned, now) ? Duration.millis(this.owned.left(now)) : Duration.zero
    })
  }

  get lost() {
    return this.owned.onLoss.next(() => {
      if (this.client.table.isHeld(this.owned)) return undefined
      const { loss } = this.owned
      // A lease that ended normally is never lost
      return loss === undefined ? Effect.never : Effect.succeed(loss)
    })
  }

  get revoked() {
    const { owned } = this
    // Set permanently: its handler may yield for a recall that was withdrawn
    return Effect.map(owned.revoked, () => {
      if (owned.isRevoked) owned.hasHeard = true
      else owned.isKept = true
    })
  }

  get isRevoked() {
    return Effect.sync(() => {
      if (this.owned.isRevoked) this.owned.hasHeard = true
      return this.owned.isRevoked
    })
  }

  get yield() {
    return Effect.suspend(() => Effect.fail(new StreamYielded({ stream: this.owned.stream })))
  }

  get done() {
    return this.client.done(this.owned)
  }

  get release() {
    return this.client.release(this.owned)
  }

  get protect(): StreamLease["protect"] {
    return <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.withFiber<A, E | LeaseLost, R>((parent) => {
          const { client: { table }, owned } = this
          // Check and begin in one step: after a yield in between, the lease may be over
          if (!table.isHeld(owned) || !owned.takesWork) return Effect.fail(owned.over)
          owned.work.start()
          const own: { work: Fiber.Fiber<A, E> | undefined } = { work: undefined }
          const context = Context.add(parent.context, Containing, [...parent.getRef(Containing), own])
          const fiber = own.work = Effect.runForkWith(context as Context.Context<R>)(effect)
          owned.work.add(fiber, !owned.isOpen())
          return restore(Fiber.await(fiber)).pipe(
            Effect.onInterrupt(() =>
              Effect.flatMap(Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber)), remains)
            ),
            Effect.ensuring(Effect.sync(() => owned.work.remove(fiber))),
            Effect.flatMap((exit) => {
              // A lease that ended normally was not lost
              const isWhole = table.isHeld(owned) || owned.outcome !== undefined
              return settle(exit, isWhole && !owned.work.wasEnded(fiber) ? undefined : owned.over)
            })
          )
        })
      )
  }

  get progress() {
    return Effect.sync(() => {
      this.progressed()
      if (this.owned.failures > 0) this.owned.hasProgressed = true
    })
  }

  /** Work continues, so it does not stall. Nothing is committed, so a streak of failures continues too. */
  get advance() {
    return Effect.sync(() => this.progressed())
  }

  get checkpoint() {
    return Effect.suspend(() => this.client.store.checkpoint(this.owned.stream))
  }

  get end() {
    return Effect.suspend(() => this.client.store.end(this.owned))
  }

  get extent() {
    return Effect.suspend(() => this.client.store.extent(this.owned.stream))
  }

  readonly count: StreamLease["count"] = (after, last) =>
    Effect.suspend(() => this.client.store.count(this.owned.stream, after, last))

  readonly commit: StreamLease["commit"] = (id, options) =>
    this.committing(() => this.client.store.commit(this.owned, id, options?.isLast, options?.offset))

  readonly seek: StreamLease["seek"] = (to) =>
    this.committing(() =>
      Effect.flatMap(
        this.checkpoint,
        (from) =>
          this.client.store.seek(this.owned.stream, to, { owner: this.owned, from: Option.getOrUndefined(from)?.id })
      ).pipe(Effect.repeat({ until: (reply) => reply !== "Changed" }))
    )

  readonly deadLetter: StreamLease["deadLetter"] = (message, reason) =>
    this.committing(() => this.client.store.deadLetterMessage(this.owned, message, reason))

  readonly messagesAfter: StreamLease["messagesAfter"] = (after, count) =>
    Effect.andThen(
      this.ensure,
      // Uninterruptible: a fiber that is interrupted between the count and its finalizer would count forever
      Effect.uninterruptibleMask((restore) => {
        const { client, owned } = this
        owned.waiting++
        owned.hasRead = true
        const ended = Effect.flatMap(owned.ended, () => Effect.fail(owned.over))
        return Effect.ensuring(
          restore(Effect.raceFirst(client.store.awaitMessages(owned.stream, after, count), ended)),
          Effect.sync(() => {
            owned.waiting--
            this.progressed()
            // Time spent waiting does not count: the progress timeout starts now
            client.table.watch(owned)
          })
        )
      })
    )

  /** Processes one message while the loop may wait for others: the handler is busy, and must make progress. */
  readonly inHand = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.uninterruptibleMask((restore) => {
      const { client, owned } = this
      if (owned.inHand++ === 0) {
        this.progressed()
        client.table.watch(owned)
      }
      return Effect.ensuring(restore(work), Effect.sync(() => owned.inHand--))
    })

  override toJSON() {
    const { client, owned } = this
    const { entry, stream, token } = owned
    return { stream, entry, token, timeLeft: timeLeft(owned.isOpen() ? owned.left(client.table.now()) : 0) }
  }

  private progressed(): void {
    if (this.owned.progressedAt !== undefined) this.owned.progressedAt = this.client.table.now().monotonic
  }

  private committing(
    call: () => Effect.Effect<string, StoreError>
  ): Effect.Effect<void, LeaseLost | StoreError> {
    return this.ensure.pipe(
      Effect.andThen(call),
      Effect.flatMap((reply) => {
        if (reply === "NotOwner") return this.client.ends.refused(this.owned)
        this.progressed()
        return Effect.void
      })
    )
  }
}
