/**
 * Implements `StreamClient` on a store: checks the options, creates a client's parts, and revokes its data streams when
 * the scope closes.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { supervise } from "../../internal/lease/backgroundLoop.ts"
import * as metricsRecorder from "../../internal/lease/metricsRecorder.ts"
import { slicedTasks } from "../../internal/lease/workSlices.ts"
import * as log from "../../internal/log.ts"
import * as names from "../../internal/nameRules.ts"
import { randomKey } from "../../internal/processIdentity.ts"
import type { BackendError, InvalidConfig } from "../../SimbaError.ts"
import type { Handler, Options, RunOptions, StreamClient } from "../StreamClient.ts"
import { StreamNotFound } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import { StreamStore } from "../StreamStore.ts"
import * as administration from "./administration.ts"
import { check } from "./config.ts"
import * as consumptions from "./consumption.ts"
import type { ClientContext } from "./context.ts"
import * as handlerRunner from "./handlerRunner.ts"
import * as lagReporter from "./lagReporter.ts"
import * as leaseEnds from "./leaseEnds.ts"
import { LeaseImpl } from "./leaseHandle.ts"
import * as leaseTakers from "./leaseTaker.ts"
import * as notificationQueue from "./notificationQueue.ts"
import type { OwnedStream } from "./ownedStream.ts"
import * as ownerEnds from "./ownerEnds.ts"
import { Pauses } from "./pauses.ts"
import * as reaper from "./reaper.ts"
import * as revocation from "./revocation.ts"
import * as storeTimeouts from "./storeTimeouts.ts"
import { StreamTable } from "./streamTable.ts"

const entryId = names.checked<EntryId>("entry", names.entryProblem)
const streamName = names.checked<StreamName>("stream", names.streamProblem)

export const make = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<StreamClient["Service"], InvalidConfig | BackendError, StreamStore | Scope.Scope> {
  const config = yield* check(options)
  const metrics = metricsRecorder.make(yield* Effect.context<never>(), false, [
    ...Object.values(StreamMetrics.stream.losses),
    StreamMetrics.stream.malformedAnnouncements,
    ...Object.values(StreamMetrics.stream.deadMessages)
  ])
  const opened = yield* (yield* StreamStore).open(config.service, {
    enableEvents: config.enableEvents,
    checkpointRetention: config.checkpointRetention
  })
  const store = storeTimeouts.make(opened, config)
  const table = new StreamTable(yield* Clock.Clock, yield* slicedTasks, config, metrics)
  const ends = leaseEnds.make(table, store, config)
  const client: ClientContext = {
    config,
    store,
    metrics,
    table,
    ends,
    done: (owned) => ownerEnds.done(client, owned),
    release: (owned) => ownerEnds.release(client, leaseTaker, owned),
    members: [],
    pauses: new Pauses(),
    session: yield* randomKey
  }
  const leaseTaker = leaseTakers.make(client)
  const consumption = consumptions.make(client, leaseTaker)
  const undoing = yield* FiberSet.make()
  let notices: notificationQueue.NotificationQueue | undefined
  /** Whether a read or a claim may have registered this consumer with the backend. */
  let isConsumer = false

  table.onLost = ({ entry, stream, token }, reason) =>
    notices?.push({ _tag: "StreamDisowned", stream, entry, token, reason: { _tag: reason } })

  yield* table.renewing(store)
  yield* Effect.forkScoped(supervise("Keeping checkpoints", reaper.keepCheckpoints(client)))
  yield* Effect.forkScoped(supervise("Measuring the lag", lagReporter.report(client)))
  yield* Effect.addFinalizer(() =>
    Effect.gen(function*() {
      table.isClosed = true
      yield* consumption.close
      // From now on, granted claims are released immediately
      yield* Effect.timeoutOption(leaseTaker.idle, config.releaseTimeout)
      yield* revocation.revokeAll(client, [...table.all()])
      if (!isConsumer) return
      yield* storeTimeouts.leaving(
        "Cannot leave the group",
        store.removeConsumer(config.consumer),
        config.commandTimeout
      )
    })
  )

  const leaseOf = (owned: OwnedStream): StreamLease => new LeaseImpl(client, owned)

  const acquiring = Effect.fnUntraced(function*(name: string, acquired: Array<OwnedStream>) {
    const stream = yield* streamName(name)
    const notFound = (problem: string) => Effect.fail(new StreamNotFound({ stream, problem }))
    if (table.isInUse(stream)) return
    const found = yield* store.find(stream)
    if (Option.isNone(found)) return yield* notFound("it is not announced, or it is finished")
    isConsumer = true
    // Another consumer may just have read the entry and be about to take it
    const candidate = { ...found.value, minIdle: config.leaseDuration }
    const [taken] = yield* leaseTaker.take([candidate], "name", (owned) => acquired.push(owned))
    if (acquired.length > 0) return
    if (table.isClosed || taken === undefined) return yield* notFound("this client is closed")
    switch (taken._tag) {
      case "Failed":
        return yield* taken.error
      case "DeadLettered":
        return yield* notFound("its handlers failed too often: see the dead letters")
      case "Gone":
        return yield* notFound("it is finished")
      case "Undelivered":
        return yield* notFound(
          "it has not been delivered yet: a consumer must first read it through `run` or `notifications`"
        )
    }
  })

  /**
   * Yields the data stream once its protected work has ended. Waits for the request for at most `releaseTimeout`; after
   * that, the request continues in the background.
   */
  const yieldLease = (owned: OwnedStream) =>
    owned.afterWork(Effect.suspend(() =>
      owned.isOpen()
        ? Effect.flatMap(
          FiberSet.run(undoing, ends.yield(owned)),
          (fiber) => Effect.asVoid(Effect.timeoutOption(Fiber.await(fiber), config.releaseTimeout))
        )
        : Effect.void
    ))

  const acquireIfAvailable = (name: string) =>
    Effect.suspend(() => {
      const acquired: Array<OwnedStream> = []
      return Effect.addFinalizer(() => Effect.forEach(acquired, yieldLease, { discard: true })).pipe(
        Effect.andThen(acquiring(name, acquired)),
        // Yield now: the caller was interrupted, but the scope may stay open for a long time
        Effect.onInterrupt(() =>
          Effect.forEach(acquired.splice(0), (owned) => FiberSet.run(undoing, ends.yield(owned)), { discard: true })
        ),
        Effect.map(() => Option.map(Option.fromUndefinedOr(acquired[0]), leaseOf))
      )
    })

  const announceAll: StreamClient["Service"]["announceAll"] = Effect.fnUntraced(function*(inputs) {
    const announcements = yield* Effect.forEach(
      inputs,
      ({ info, stream }) => Effect.map(streamName(stream), (stream) => ({ stream, info: info ?? {} }))
    )
    const announced = yield* store.announce(announcements)
    return announced.map((result, i) => ({ stream: announcements[i]!.stream, ...result }))
  })

  const redriveAll: StreamClient["Service"]["redriveAll"] = Effect.fnUntraced(
    function*({ filter = () => true, limit = Infinity } = {}) {
      const { deadLetters } = yield* store.inspect
      let redriven = 0
      let after: EntryId | undefined
      for (let listed = 0; listed < deadLetters && redriven < limit;) {
        const page = yield* store.deadLetters(after, Math.min(100, deadLetters - listed))
        if (page.length === 0) break
        listed += page.length
        after = page[page.length - 1]!.id
        for (const letter of page) {
          if (redriven < limit && filter(letter) && (yield* store.redrive(letter.id))) redriven++
        }
      }
      return redriven
    }
  )

  const run: StreamClient["Service"]["run"] = <A, E, R>(
    handler: Handler<A, E, R>,
    options?: RunOptions<unknown, unknown>
  ) =>
    Effect.scoped(Effect.gen(function*() {
      const body = Effect.isEffect(handler) ? () => handler : handler
      // The type of `run` already requires the hooks' services
      const hooks = (options ?? {}) as RunOptions
      const fibers = yield* FiberSet.make<void>()
      const start = yield* FiberSet.runtime(fibers)<Exclude<R, StreamLease>>()
      return yield* consumption.start({
        operation: "run",
        onStarted: () => {
          isConsumer = true
        },
        deliver: (owned) => {
          owned.hasHandler = true
          start(Effect.catchCause(
            handlerRunner.runHandler(client, leaseTaker, owned, body, hooks),
            (cause) =>
              Effect.andThen(
                log.error("A data stream's runner crashed; its lease will expire", cause),
                Effect.sync(() => table.lose(owned, "Stalled"))
              )
          ))
        },
        ready: Effect.void
      })
    }))

  const notifications = Stream.unwrap(Effect.gen(function*() {
    const own = yield* notificationQueue.make(metrics)
    yield* Effect.addFinalizer(() => own.abandon)
    const consuming = Effect.scoped(consumption.start({
      operation: "notifications",
      onStarted: () => {
        isConsumer = true
        notices = own
      },
      deliver: ({ entry, info, stream, token }) => own.push({ _tag: "StreamAdded", stream, entry, info, token }),
      onExpired: own.expired,
      ready: own.ready
    }))
    yield* Effect.forkScoped(Effect.onExit(consuming, (exit) => {
      if (notices === own) notices = undefined
      if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return own.end("the client is closed")
      const failed = Cause.findFail(exit.cause)
      // A defect fails the stream
      if (failed._tag === "Failure") return own.fail(failed.failure)
      const { error } = failed.success
      return error._tag === "InvalidConfig" ? own.fail(Cause.fail(error)) : own.end(error.message)
    }))
    return own.stream
  }))

  return {
    ...administration.make(store),
    id: config.consumer,
    run,
    notifications,
    announce: (stream, info) => Effect.map(announceAll([{ stream, info }]), ([announced]) => announced!),
    announceAll,
    acquireIfAvailable,
    owned: Effect.sync(() => table.owned().map(leaseOf)),
    inspect: store.inspect,
    deadLetters: ({ after, limit = 100 } = {}) => store.deadLetters(after, limit),
    redrive: (id) => Effect.flatMap(entryId(id), store.redrive),
    redriveAll,
    deadMessages: (stream, { after, limit = 100 } = {}) =>
      Effect.flatMap(streamName(stream), (stream) => store.deadMessages(stream, after, limit)),
    redriveMessage: (stream, id) =>
      Effect.flatMap(
        Effect.all([streamName(stream), entryId(id)]),
        ([stream, id]) => store.redriveMessage(stream, id)
      )
  }
})
