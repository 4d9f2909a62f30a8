/**
 * Ends a data stream's lease: marks the stream as done, releases it, hands it over, or dead-letters its announcement.
 * The lease is renewed until the backend has replied. Called by `handlerRunner`, `ownerEnds`, `revocation` and
 * `client`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import { storeTimeout } from "../../internal/lease/replyTimeout.ts"
import { isTransient, toFailure } from "../../internal/lease/storeFailure.ts"
import * as log from "../../internal/log.ts"
import type { LeaseLost, StoreError } from "../../SimbaError.ts"
import type { Member, Service } from "../StreamStore.ts"
import type { StreamConfig } from "./config.ts"
import { annotations, type EndOutcome, type OwnedStream } from "./ownedStream.ts"
import type { StreamTable } from "./streamTable.ts"

type Failures = Exclude<Effect.Success<ReturnType<Service["fail"]>>, string>

export interface LeaseEnds {
  /**
   * `done`, `release`, `handOver` and `deadLetter` make one attempt each. They fail with `LeaseLost` if this consumer
   * has lost the lease.
   */
  readonly done: (owned: OwnedStream) => Effect.Effect<void, LeaseLost | StoreError>
  readonly release: (owned: OwnedStream) => Effect.Effect<void, LeaseLost | StoreError>
  readonly handOver: (owned: OwnedStream, to: Member) => Effect.Effect<void, LeaseLost | StoreError>
  readonly deadLetter: (owned: OwnedStream, reason: string) => Effect.Effect<void, LeaseLost | StoreError>
  /**
   * Counts a handler failure once per `attempt`. Returns the number of consecutive failures and how long they have
   * lasted.
   */
  readonly fail: (owned: OwnedStream, attempt: number) => Effect.Effect<Failures, LeaseLost | StoreError>
  /**
   * Called when a reply says that this consumer no longer has the lease. Finds out why, marks the lease as lost, and
   * fails with `LeaseLost`.
   */
  readonly refused: (owned: OwnedStream) => Effect.Effect<never, LeaseLost>
  /**
   * Retries while this consumer has the lease, but makes only one more attempt once the handler has been stopped. Logs
   * failures. Returns `None` if no attempt succeeded.
   */
  readonly retry: <A>(
    owned: OwnedStream,
    what: string,
    attempt: Effect.Effect<A, LeaseLost | StoreError>,
    /** The consequence to log if no attempt succeeds. */
    otherwise?: string
  ) => Effect.Effect<Option.Option<A>>
  /**
   * Retries a request that ends the lease. If no attempt succeeds, marks the lease as lost: another consumer can take
   * the data stream after it expires.
   */
  readonly endOrLose: (
    owned: OwnedStream,
    what: string,
    attempt: Effect.Effect<void, LeaseLost | StoreError>
  ) => Effect.Effect<void>
  readonly yield: (owned: OwnedStream) => Effect.Effect<void>
}

/** Logged whenever an announcement is dead-lettered because its handlers failed. Alerts match this message. */
export const logDeadLettered = (subject: Parameters<typeof annotations>[0], failures: number) =>
  Effect.annotateLogs(
    log.error(`Data stream dead-lettered: its handlers failed ${failures} time(s)`),
    annotations(subject)
  )

/** Maximum concurrent requests. A request's timeout starts when it is sent, not while it waits here. */
const maxUnderWay = 400

/** The pause between attempts doubles from the minimum up to the maximum. */
const [minPauseMillis, maxPauseMillis] = [50, 1000]

export const make = (table: StreamTable, store: Service, config: StreamConfig): LeaseEnds => {
  const underWay = Semaphore.makeUnsafe(maxUnderWay)

  const refused = Effect.fnUntraced(function*(owned: OwnedStream) {
    if (owned.isOpen()) {
      // Renewing a lost lease changes nothing, but the reply says why it was lost
      const exit = yield* Effect.exit(
        storeTimeout(store.renew([owned], config.leaseDuration), "renew", config.commandTimeout)
      )
      const reply = Exit.isSuccess(exit) ? exit.value[0] : undefined
      table.lose(owned, reply?._tag === "Lost" ? reply.reason : "TakenOver")
    }
    return yield* owned.over
  })

  /** Uninterruptible: a command that has been sent may take effect even without a reply. */
  const attempt = <A>(
    owned: OwnedStream,
    operation: string,
    call: Effect.Effect<A | "NotOwner", StoreError>,
    how?: EndOutcome
  ) =>
    underWay.withPermit(Effect.uninterruptible(Effect.gen(function*() {
      yield* table.ensure(owned)
      if (how !== undefined) owned.endings++
      const reply = yield* storeTimeout(call, operation, config.commandTimeout).pipe(
        Effect.catchCause((cause) => {
          const error = toFailure(operation, cause)
          if (how !== undefined && isTransient(error)) owned.attempted = { how, at: table.now().monotonic }
          return Effect.fail(error)
        }),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            if (how === undefined) return
            // End and decrement in one step: if this yielded, a renewal could report the ended lease as lost
            if (Exit.isSuccess(exit) && exit.value !== "NotOwner") table.end(owned, how)
            owned.endings--
          })
        )
      )
      if (reply === "NotOwner") return yield* refused(owned)
      return reply as Exclude<A, "NotOwner">
    })))

  const ending = (
    owned: OwnedStream,
    how: EndOutcome,
    call: Effect.Effect<string, StoreError>
  ): Effect.Effect<void, LeaseLost | StoreError> => {
    // An earlier attempt without a reply may have ended the lease. The store itself recognizes a repeated `done`
    const reply = Effect.map(
      call,
      (reply) => reply === "NotOwner" && how !== "done" && owned.mayHaveEnded === how ? how : reply
    )
    return owned.afterWork(attempt(owned, how, reply, how)).pipe(
      Effect.andThen(
        how === "deadLettered"
          ? logDeadLettered(owned, owned.failures)
          : Effect.annotateLogs(log.debug(`Data stream ${words[how]}`), annotations(owned))
      )
    )
  }

  const retry: LeaseEnds["retry"] = (owned, what, attempt, otherwise = "its lease will expire") =>
    Effect.gen(function*() {
      let isLogged = false
      for (let delay = minPauseMillis;; delay = Math.min(delay * 2, maxPauseMillis)) {
        const wasStopped = owned.isStopped
        const exit = yield* Effect.exit(attempt)
        if (Exit.isSuccess(exit)) return Option.some(exit.value)
        const error = Option.getOrUndefined(Exit.findErrorOption(exit))
        if (error?._tag === "LeaseLost" || !owned.isOpen()) return Option.none()
        const isLast = error === undefined || !isTransient(error) || wasStopped
        if (!isLogged || isLast) {
          isLogged = true
          yield* log.warning(
            `${what} failed; ${isLast ? otherwise : "retrying"}`,
            exit.cause
          ).pipe(Effect.annotateLogs(annotations(owned)))
        }
        if (isLast) return Option.none()
        yield* Effect.sleep(Duration.millis(delay))
      }
    })

  const endOrLose: LeaseEnds["endOrLose"] = (owned, what, attempt) =>
    Effect.map(retry(owned, what, attempt), (done) => {
      if (Option.isNone(done)) table.lose(owned, "BackendGone")
    })

  const release: LeaseEnds["release"] = (owned) => ending(owned, "released", store.release(owned))

  return {
    refused,
    retry,
    endOrLose,
    yield: (owned) => endOrLose(owned, "Releasing a data stream", release(owned)),
    done: (owned) => ending(owned, "done", store.done(owned)),
    release,
    deadLetter: (owned, reason) => ending(owned, "deadLettered", store.deadLetter(owned, reason)),
    handOver: (owned, { consumer, session }) =>
      ending(owned, "handedOver", store.handOver(owned, { consumer, session }, config.confirmTimeout)),
    fail: (owned, number) =>
      Effect.tap(
        attempt(
          owned,
          "fail",
          Effect.suspend(() =>
            store.fail(owned, {
              attempt: number,
              hasProgressed: owned.hasProgressed,
              streakEndsAfter: config.streakEndsAfter
            })
          )
        ),
        Effect.sync(() => owned.hasProgressed = false)
      )
  }
}

const words: Record<Exclude<EndOutcome, "deadLettered">, string> = {
  done: "is done",
  released: "was released",
  handedOver: "was handed over"
}
