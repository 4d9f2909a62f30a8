/**
 * Processes a data stream's messages in batches, one after another. `StreamMessages` uses it for `processBatches`, and
 * for `process` without concurrency.
 */
import { isReadonlyArrayNonEmpty, type NonEmptyReadonlyArray } from "effect/Array"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { instant } from "../../internal/lease/instant.ts"
import type { StreamYielded } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { Message } from "../StreamMessages.ts"
import { type LeaseError, retryOutages } from "./leaseRequests.ts"
import type { Attempts } from "./messageAttempts.ts"
import type { MessageCommits, Processed } from "./messageCommits.ts"
import { type Delivery, type MessageReader, sizeOf } from "./messageReader.ts"

/** The parts used by this loop and by `concurrentLoop`. */
export interface Loop<A, RD> {
  readonly lease: StreamLease
  readonly reading: MessageReader<A, RD>
  readonly commits: MessageCommits
  readonly attempt: Attempts
}

/** Called when the reader has moved back to an earlier position. */
export const turnBack = (
  lease: StreamLease,
  delivery: Extract<Delivery<never>, { readonly _tag: "Rewritten" | "LostEnd" }>
): Effect.Effect<void, LeaseError> =>
  // The failover may have lost the commit of the last remaining message too
  delivery._tag === "LostEnd" ? retryOutages(lease.commit(delivery.left.id, delivery.left)) : Effect.void

export const processedOf = <A>(delivery: Extract<Delivery<A>, { readonly _tag: "Message" | "Dead" }>): Processed =>
  delivery._tag === "Message" ? delivery.message : { id: delivery.id, offset: delivery.offset, isLast: false }

export interface Limits {
  readonly count: number
  readonly bytes: number
  /** How long the first message in a batch waits for others, in milliseconds. */
  readonly waitMillis: number
}

/** Commits after each batch or, if batches consist of single messages, according to the commit options. */
export const inBatches = <A, RD, E, R>(
  { attempt, commits, lease, reading }: Loop<A, RD>,
  limits: Limits,
  handler: (messages: NonEmptyReadonlyArray<Message<A>>) => Effect.Effect<unknown, E, R>
): Effect.Effect<void, E | LeaseError | StreamYielded, R | RD> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const now = () => instant(clock).monotonic
    let messages: Array<Message<A>> = []
    let last: Processed | undefined
    let bytes = 0
    let began = 0
    reading.settled = commits.settle

    /**
     * Retries the messages in a failed batch one by one, and commits each message before the next one starts. After the
     * reader has moved back, these messages must not be committed.
     */
    const oneByOne = Effect.fnUntraced(function*(messages: ReadonlyArray<Message<A>>, isRewound: boolean) {
      for (const [index, message] of messages.entries()) {
        if (index > 0 && !isRewound) {
          commits.add(messages[index - 1]!)
          yield* retryOutages(commits.flush)
        }
        yield* lease.ensure
        if (yield* lease.isRevoked) return yield* lease.yield
        yield* attempt([message], handler)
      }
    })
    const handle = Effect.fnUntraced(function*(isRewound = false) {
      if (isReadonlyArrayNonEmpty(messages) && !(yield* attempt(messages, handler))) {
        yield* oneByOne(messages, isRewound)
      }
      if (last !== undefined && !isRewound) commits.add(last)
      messages = []
      last = undefined
      bytes = 0
    })
    const fill = Effect.suspend(() =>
      last === undefined
        ? commits.whenDue
        : Effect.sleep(Duration.millis(Math.max(0, began + limits.waitMillis - now())))
    )

    for (;;) {
      const delivery = yield* reading.next(fill)
      if (delivery === undefined || delivery._tag === "Waited") {
        yield* handle()
        if (delivery === undefined) return yield* retryOutages(commits.flush)
        yield* retryOutages(commits.flush)
        continue
      }
      if (delivery._tag === "Rewritten" || delivery._tag === "LostEnd") {
        yield* handle(true)
        yield* turnBack(lease, delivery)
        continue
      }
      if (last === undefined) began = now()
      last = processedOf(delivery)
      if (delivery._tag === "Message") {
        messages.push(delivery.message)
        bytes += sizeOf(delivery.message)
      }
      const isFull = messages.length >= limits.count || bytes >= limits.bytes
      if (isFull || limits.count === 1 || limits.waitMillis === 0 && reading.isEmpty) {
        yield* handle()
        yield* limits.count === 1 ? commits.afterMessage : retryOutages(commits.flush)
      }
    }
  })
