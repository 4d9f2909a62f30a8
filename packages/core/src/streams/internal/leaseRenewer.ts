/** The renewal loop: all that is owned, in batches, and what failed again until its deadline. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Pull from "effect/Pull"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Instant } from "../../internal/lease/deadline.ts"
import { sleepUntil } from "../../internal/lease/sleepUntil.ts"
import * as tracing from "../../internal/tracing.ts"
import type { BackendError, ProtocolError } from "../../SimbaError.ts"
import type { StreamConfig } from "../StreamConfig.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { RenewResult, Service } from "../StreamStore.ts"
import type { MetricsRecorder } from "./metricsRecorder.ts"
import { annotations, type OwnedStream } from "./ownedStream.ts"
import { toFailure } from "./storeFailure.ts"
import type { StreamTable } from "./streamTable.ts"

/** Leases of one renewing call: enough to share the round trip, few enough not to hold up the server. */
export const batchSize = 200

/**
 * When a batch is renewed again, by how many of its attempts have failed in a row: 50 milliseconds after the first, then
 * twice as long each time up to an eighth of the heartbeat, varied by a fifth.
 */
const guard = (heartbeat: number): Schedule.Schedule<number, boolean> =>
  Schedule.fromStep(Effect.sync(() => {
    let failures = 0
    return (_now: number, renewed: boolean) => {
      failures = renewed ? 0 : failures + 1
      const base = renewed ? heartbeat : Math.min(50 * 2 ** (failures - 1), heartbeat / 8)
      return Effect.map(renewed ? Effect.succeed(1) : Random.nextBetween(0.8, 1.2), (factor) =>
        [failures, Duration.millis(base * factor)] as [number, Duration.Duration])
    }
  }))

export const make = Effect.fnUntraced(function*(
  table: StreamTable,
  store: Service,
  config: StreamConfig,
  meter: MetricsRecorder
): Effect.fn.Return<Effect.Effect<never>, never, Scope.Scope> {
  const heartbeat = Duration.toMillis(config.heartbeatInterval)
  const batches = yield* FiberSet.make()
  const step = yield* Schedule.toStep(guard(heartbeat))
  /** In what phase a lease began does not matter: what comes due within half a heartbeat is renewed with the rest. */
  const window = heartbeat / 2

  const after = (now: Instant, renewed: boolean) =>
    Effect.map(
      Pull.catchDone(step(now.wall, renewed), () => Effect.succeed([0, config.heartbeatInterval] as const)),
      ([, delay]) => Duration.toMillis(delay)
    )

  const settle = (owned: OwnedStream, result: RenewResult, sent: Instant, now: Instant, again: number) => {
    // An answer about what ended meanwhile says nothing any more
    if (!owned.isOpen()) return
    if (result._tag === "Lost") {
      meter.update(StreamMetrics.renewals.lost, 1)
      // What ends it may have arrived first: its own answer tells
      if (owned.ending) owned.nextRenewal = Infinity
      else table.lose(owned, result.reason)
      return
    }
    const renewed = result._tag === "Renewed"
    owned.failing = !renewed
    meter.update(StreamMetrics.renewals[renewed ? "renewed" : "failed"], 1)
    if (renewed) {
      meter.update(StreamMetrics.timeLeftAtRenewal, Math.max(0, owned.left(now)))
      owned.extend(sent)
      owned.nextRenewal = sent.monotonic + heartbeat
    } else {
      owned.nextRenewal = now.monotonic + again
    }
    if (owned.nextRenewal < table.nextRenewal) table.renewalChanged.openUnsafe()
  }

  const renew = Effect.fnUntraced(function*(batch: ReadonlyArray<OwnedStream>) {
    const sent = table.now()
    const call = tracing.span(
      "simba.streams.renew",
      () => ({ root: true, attributes: { "simba.leases": batch.length } }),
      store.renew(batch, config.leaseDuration)
    )
    const exit = yield* Effect.exit(Effect.timeout(call, config.commandTimeout))
    const now = table.now()
    const first: Array<OwnedStream> = []
    let error: BackendError | ProtocolError | undefined
    const results = Exit.isSuccess(exit) ? exit.value : undefined
    const failure = Exit.isFailure(exit) ? toFailure("renew", exit.cause) : undefined
    const failed = failure !== undefined || results!.some(({ _tag }) => _tag === "Failed")
    const again = yield* after(now, !failed)
    for (let i = 0; i < batch.length; i++) {
      const owned = batch[i]!
      owned.renewing = false
      const result: RenewResult = results?.[i] ?? { _tag: "Failed", error: failure! }
      if (result._tag === "Failed" && !owned.failing) {
        first.push(owned)
        error = result.error
      }
      settle(owned, result, sent, now, again)
    }
    if (error !== undefined) {
      yield* Effect.logWarning(
        `${first.length} data stream(s) could not be renewed; trying again until their deadlines: ${error.message}`
      ).pipe(Effect.annotateLogs(annotations(first[0]!)))
    }
  })

  return Effect.forever(Effect.gen(function*() {
    table.renewalChanged.closeUnsafe()
    const now = table.now()
    let next = Infinity
    for (const owned of table.all()) if (!owned.renewing) next = Math.min(next, owned.nextRenewal)
    if (next > now.monotonic) {
      table.nextRenewal = next
      yield* sleepUntil(next, table.renewalChanged)
      table.nextRenewal = -Infinity
      return
    }
    const due: Array<OwnedStream> = []
    for (const owned of table.all()) {
      if (owned.renewing || owned.nextRenewal > now.monotonic + window) continue
      // After a stall the deadline counts, not a renewal that would come too late
      table.check(owned, now)
      if (!owned.isOpen()) continue
      owned.renewing = true
      due.push(owned)
    }
    for (let i = 0; i < due.length; i += batchSize) {
      yield* FiberSet.run(batches, renew(due.slice(i, i + batchSize)))
    }
  }))
})
