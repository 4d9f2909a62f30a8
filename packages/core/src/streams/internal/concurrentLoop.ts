/**
 * Processes a data stream's messages concurrently, but messages with the same key in order. `StreamMessages` uses it if
 * `concurrency` is above 1, and otherwise `messageLoop`.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { StreamYielded } from "../StreamError.ts"
import type { Message } from "../StreamMessages.ts"
import { LeaseImpl } from "./leaseHandle.ts"
import { type LeaseError, retryOutages } from "./leaseRequests.ts"
import type { Processed } from "./messageCommits.ts"
import { calling } from "./messageDecoder.ts"
import { type Loop, processedOf, turnBack } from "./messageLoop.ts"

/** A message that was read. Commits stop before the first message that is not done. */
interface Slot {
  readonly processed: Processed
  isDone: boolean
}

interface Options<A> {
  readonly concurrency: number
  readonly key: (message: Message<A>) => string
}

/** Maximum number of messages to track: the first unfinished message and all messages read after it. */
const windowOf = (concurrency: number) => Math.max(100, 4 * concurrency)

export const concurrently = <A, RD, E, R>(
  { attempt, commits, lease, reading }: Loop<A, RD>,
  { concurrency, key }: Options<A>,
  handler: (message: Message<A>) => Effect.Effect<unknown, E, R>
): Effect.Effect<void, E | LeaseError | StreamYielded, R | RD> =>
  Effect.scoped(Effect.gen(function*() {
    const fibers = yield* FiberSet.make<void, E | LeaseError>()
    const fork = yield* FiberSet.runtime(fibers)<R>()
    const permits = Semaphore.makeUnsafe(concurrency)
    const slots: Array<Slot> = []
    /** The unfinished messages for each key, the current one first. */
    const lanes = new Map<string, Array<{ readonly message: Message<A>; readonly slot: Slot }>>()
    /** Opened when a handler ends or the data stream is revoked. */
    const advanced = Latch.makeUnsafe(false)
    /** Opened when the data stream is revoked or a handler yields. No more messages start after that. */
    const stopping = Latch.makeUnsafe(false)
    let running = 0
    const inHand = lease instanceof LeaseImpl ? lease.inHand : <A, E, R>(work: Effect.Effect<A, E, R>) => work

    const complete = (slot: Slot) => {
      slot.isDone = true
      while (slots[0]?.isDone === true) commits.add(slots.shift()!.processed)
    }

    const run = (message: Message<A>, slot: Slot): Effect.Effect<void, E | LeaseError, R> =>
      Effect.suspend(() => {
        if (stopping.isOpen()) return Effect.void
        running++
        // The message may have waited for its turn, and the process may have been paused in the meantime
        const work = Effect.andThen(lease.ensure, attempt([message], ([message]) => handler(message)))
        return inHand(work).pipe(
          Effect.andThen(Effect.sync(() => complete(slot))),
          Effect.catchIf(
            (error): error is StreamYielded => error instanceof StreamYielded,
            () => stopping.open
          ),
          Effect.ensuring(Effect.sync(() => {
            running--
            advanced.openUnsafe()
          }))
        ) as Effect.Effect<void, E | LeaseError, R>
      })

    const drain = (lane: string): Effect.Effect<void, E | LeaseError, R> =>
      Effect.gen(function*() {
        const queue = lanes.get(lane)!
        while (queue.length > 0 && !stopping.isOpen()) {
          const { message, slot } = queue[0]!
          yield* permits.withPermit(run(message, slot))
          queue.shift()
          if (slot.isDone) yield* commits.afterMessage
        }
        lanes.delete(lane)
      })

    const begin = (message: Message<A>, lane: string) => {
      const slot = { processed: message, isDone: false }
      slots.push(slot)
      const queue = lanes.get(lane)
      if (queue !== undefined) return void queue.push({ message, slot })
      lanes.set(lane, [{ message, slot }])
      // If a handler interrupts itself, the loop ends as after a failure
      fork(drain(lane), { propagateInterruption: true })
    }

    const until = (holds: () => boolean): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (holds()) return Effect.void
        advanced.closeUnsafe()
        return Effect.andThen(advanced.await, until(holds))
      })

    // A rewind moves the checkpoint back. After it, the old messages must not be committed
    reading.settled = Effect.andThen(
      until(() => slots.length === 0 || running === 0 && stopping.isOpen()),
      commits.settle
    )

    const loop = Effect.gen(function*() {
      for (;;) {
        yield* until(() => slots.length < windowOf(concurrency) || stopping.isOpen())
        const delivery = yield* stopping.isOpen() ? lease.yield : reading.next(stopping.await)
        if (delivery === undefined) {
          yield* until(() => slots.length === 0 || stopping.isOpen())
          return yield* stopping.isOpen() ? lease.yield : retryOutages(commits.flush)
        }
        if (delivery._tag === "Waited") continue
        if (delivery._tag === "Rewritten" || delivery._tag === "LostEnd") {
          // Stopping: messages before the new position have not been processed
          if (slots.length > 0) return yield* lease.yield
          yield* turnBack(lease, delivery)
        } else {
          if (delivery._tag === "Message") {
            const { message } = delivery
            const lane = calling("key", () => key(message))
            if (lane._tag === "Success") {
              begin(message, lane.success)
              continue
            }
            yield* reading.reject(message, lane.failure)
          }
          const slot = { processed: processedOf(delivery), isDone: false }
          slots.push(slot)
          complete(slot)
          yield* commits.afterMessage
        }
      }
    }).pipe(
      // Let the running handlers finish
      Effect.tapError((error) =>
        error instanceof StreamYielded
          ? Effect.andThen(stopping.open, until(() => running === 0))
          : Effect.void
      )
    )
    // While the loop waits for old messages to finish, it does not check for a revocation itself. Wake it: if the only
    // lane is committing, no more handlers end
    yield* Effect.forkScoped(Effect.all([lease.revoked, stopping.open, advanced.open], { discard: true }))
    yield* Effect.raceAllFirst([loop, FiberSet.join(fibers), commits.whenDue])
  }))
