/** Ending a holding in order: done, given back, handed over, buried. It stays owned, and renewed, until that is certain. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { isRefusal, toFailure } from "../../internal/lease/storeFailure.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { StreamConfig } from "../StreamConfig.ts"
import type { StreamLost } from "../StreamError.ts"
import type * as StreamMetrics from "../StreamMetrics.ts"
import type { Member, Service } from "../StreamStore.ts"
import { annotations, type OwnedStream } from "./ownedStream.ts"
import type { StreamTable } from "./streamTable.ts"

type EndOutcome = keyof typeof StreamMetrics.ends

export interface Completion {
  /** One try each. They fail with `StreamLost` where it is not ours any more. */
  readonly done: (owned: OwnedStream) => Effect.Effect<void, StreamLost | StoreError>
  readonly release: (owned: OwnedStream) => Effect.Effect<void, StreamLost | StoreError>
  readonly handOver: (owned: OwnedStream, to: Member) => Effect.Effect<void, StreamLost | StoreError>
  readonly bury: (owned: OwnedStream, reason: string) => Effect.Effect<void, StreamLost | StoreError>
  /** Counts a failure of its handler, once however often it is sent, and answers how many there are. */
  readonly fail: (owned: OwnedStream, attempt: number) => Effect.Effect<number, StreamLost | StoreError>
  /** The backend says that it is not ours: finds out why, and loses it. */
  readonly refused: (owned: OwnedStream) => Effect.Effect<StreamLost>
  /**
   * Tries until it comes through, as long as it is ours; once it was stopped, for one last time. Answers nothing where
   * it did not; what stood in the way is logged.
   */
  readonly insist: <A>(
    owned: OwnedStream,
    what: string,
    attempt: Effect.Effect<A, StreamLost | StoreError>
  ) => Effect.Effect<Option.Option<A>>
  /** Insists on an end. What did not come through is lost: nothing renews it, and somebody else looks at it again. */
  readonly certain: (
    owned: OwnedStream,
    what: string,
    attempt: Effect.Effect<void, StreamLost | StoreError>
  ) => Effect.Effect<void>
  readonly giveBack: (owned: OwnedStream) => Effect.Effect<void>
}

/** Between tries, in milliseconds: doubling. */
const [pause, longest] = [50, 1000]

export const make = (table: StreamTable, store: Service, config: StreamConfig): Completion => {
  const over = (owned: OwnedStream) => owned.loss ?? owned.lossOf("Released")

  const refused: Completion["refused"] = (owned) =>
    Effect.gen(function*() {
      if (!owned.isOpen()) return over(owned)
      // Renewing nothing that is not ours, it tells why it is not
      const exit = yield* Effect.exit(Effect.timeout(store.renew([owned], config.leaseDuration), config.commandTimeout))
      const answer = Exit.isSuccess(exit) ? exit.value[0] : undefined
      table.lose(owned, answer?._tag === "Lost" ? answer.reason : "TakenOver")
      return over(owned)
    })

  /** What was sent may be done, whatever came back. */
  const attempt = <A extends string | number>(
    owned: OwnedStream,
    operation: string,
    call: Effect.Effect<A, StoreError>,
    how: EndOutcome | undefined
  ): Effect.Effect<A, StreamLost | StoreError> =>
    Effect.uninterruptible(Effect.suspend((): Effect.Effect<A, StreamLost | StoreError> => {
      table.check(owned, table.now())
      if (!owned.isOpen()) return Effect.fail(over(owned))
      if (how !== undefined) owned.ending = true
      return Effect.flatMap(
        Effect.exit(Effect.timeout(call, config.commandTimeout)),
        (exit): Effect.Effect<A, StreamLost | StoreError> => {
          if (Exit.isFailure(exit)) return Effect.fail(toFailure(operation, exit.cause))
          if (exit.value === "NotOwner") return Effect.flatMap(refused(owned), Effect.fail)
          if (how !== undefined) table.end(owned, how)
          return Effect.succeed(exit.value)
        }
      )
    }))

  const ending = (
    owned: OwnedStream,
    how: EndOutcome,
    call: Effect.Effect<string, StoreError>
  ): Effect.Effect<void, StreamLost | StoreError> =>
    Effect.andThen(
      attempt(owned, how, call, how),
      Effect.annotateLogs(Effect.logDebug(`Data stream ${words[how]}`), annotations(owned))
    )

  const insist: Completion["insist"] = (owned, what, attempt) =>
    Effect.gen(function*() {
      let isTold = false
      for (let delay = pause;; delay = Math.min(delay * 2, longest)) {
        const wasStopped = owned.isStopped
        const exit = yield* Effect.exit(attempt)
        if (Exit.isSuccess(exit)) return Option.some(exit.value)
        const error = Option.getOrUndefined(Exit.findErrorOption(exit))
        if (error?._tag === "StreamLost" || !owned.isOpen()) return Option.none()
        const isLast = error === undefined || isRefusal(error) || wasStopped
        if (!isTold || isLast) {
          isTold = true
          yield* Effect.logWarning(
            `${what} failed${isLast ? ", and its lease will run out" : ", and is tried again"}`,
            exit.cause
          ).pipe(Effect.annotateLogs(annotations(owned)))
        }
        if (isLast) return Option.none()
        yield* Effect.sleep(Duration.millis(delay))
      }
    })

  const certain: Completion["certain"] = (owned, what, attempt) =>
    Effect.map(insist(owned, what, attempt), (done) => {
      if (Option.isNone(done)) table.lose(owned, "BackendGone")
    })

  const release: Completion["release"] = (owned) => ending(owned, "released", store.release(owned))

  return {
    refused,
    insist,
    certain,
    giveBack: (owned) => certain(owned, "Giving a data stream back", release(owned)),
    done: (owned) => ending(owned, "done", store.done(owned)),
    release,
    bury: (owned, reason) => ending(owned, "buried", store.deadLetter(owned, reason)),
    handOver: (owned, { consumer, session }) =>
      ending(owned, "handedOver", store.handOver(owned, { consumer, session }, config.confirmTimeout)),
    fail: (owned, number) =>
      attempt(owned, "fail", store.fail(owned, number), undefined) as Effect.Effect<number, never>
  }
}

const words: Record<EndOutcome, string> = {
  done: "is done",
  released: "was given back",
  handedOver: "was handed over",
  buried: "was put to the dead letters"
}
