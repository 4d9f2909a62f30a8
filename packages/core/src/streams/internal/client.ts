/** The operations of `StreamClient`, from a store and a configuration. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as metricsRecorder from "../../internal/lease/metricsRecorder.ts"
import { supervise } from "../../internal/lease/supervise.ts"
import * as log from "../../internal/log.ts"
import * as names from "../../internal/nameRules.ts"
import { randomKey } from "../../internal/processIdentity.ts"
import type { BackendError, InvalidConfig } from "../../SimbaError.ts"
import type { Handler, RunOptions, StreamClient } from "../StreamClient.ts"
import type { Options } from "../StreamConfig.ts"
import { AlreadyClaimed, StreamNotFound } from "../StreamError.ts"
import { StreamLease } from "../StreamLease.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import { StreamStore } from "../StreamStore.ts"
import * as administration from "./administration.ts"
import { check } from "./config.ts"
import * as consumptions from "./consumption.ts"
import type { ClientContext } from "./context.ts"
import * as handlerRunner from "./handlerRunner.ts"
import * as leaseEnds from "./leaseEnds.ts"
import { LeaseImpl } from "./leaseHandle.ts"
import * as leaseTakers from "./leaseTaker.ts"
import * as notificationQueue from "./notificationQueue.ts"
import type { OwnedStream } from "./ownedStream.ts"
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
    ...Object.values(StreamMetrics.losses),
    StreamMetrics.malformed,
    ...Object.values(StreamMetrics.deadMessages)
  ])
  const opened = yield* (yield* StreamStore).open(config.service, {
    enableEvents: config.enableEvents,
    checkpointRetention: config.checkpointRetention
  })
  const store = storeTimeouts.make(opened, config)
  const table = new StreamTable(yield* Clock.Clock, config, metrics)
  const ends = leaseEnds.make(table, store, config)
  const client: ClientContext = {
    config,
    store,
    metrics,
    table,
    ends,
    members: [],
    session: yield* randomKey
  }
  const leaseTaker = leaseTakers.make(client)
  const consumption = consumptions.make(client, leaseTaker)
  const undoing = yield* FiberSet.make()
  let notices: notificationQueue.NotificationQueue | undefined
  /** The backend knows it as a consumer from its first read or claim on. */
  let isConsumer = false

  table.onLost = ({ entry, stream, token }, reason) =>
    notices?.push({ _tag: "StreamDisowned", stream, entry, token, reason: { _tag: reason } })

  yield* table.renewing(store)
  yield* Effect.forkScoped(supervise("The keeping of checkpoints", reaper.keepCheckpoints(client)))
  yield* Effect.addFinalizer(() =>
    Effect.gen(function*() {
      table.isClosed = true
      yield* consumption.close
      // A claim that is granted from now on goes back at once
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

  const find = (name: string) =>
    Effect.flatMap(streamName(name), (stream) => {
      const owned = table.get(stream)
      return owned !== undefined && table.isHeld(owned)
        ? Effect.succeed(owned)
        : Effect.fail(new StreamNotFound({ stream, problem: "it is not owned by this client" }))
    })

  const claiming = Effect.fnUntraced(function*(name: string, claimed: Array<OwnedStream>) {
    const stream = yield* streamName(name)
    const closed = new StreamNotFound({ stream, problem: "this client is closed" })
    if (table.isInUse(stream)) {
      return yield* new AlreadyClaimed({ stream, owner: `${config.consumer} (this client)` })
    }
    const found = yield* store.find(stream)
    if (Option.isNone(found)) {
      return yield* new StreamNotFound({ stream, problem: "it is not announced, or it is finished" })
    }
    isConsumer = true
    // The consumer that read the entry a moment ago may be about to take it
    const candidate = { ...found.value, minIdle: config.leaseDuration }
    const [taken] = yield* leaseTaker.take([candidate], "claim", (owned) => claimed.push(owned))
    if (claimed[0] !== undefined) return leaseOf(claimed[0])
    if (table.isClosed || taken === undefined) return yield* closed
    switch (taken._tag) {
      case "Occupied":
        return yield* new AlreadyClaimed({ stream, owner: taken.by })
      case "Failed":
        return yield* taken.error
      case "DeadLettered":
        return yield* new StreamNotFound({ stream, problem: "its handlers failed too often: see the dead letters" })
      case "Gone":
        return yield* new StreamNotFound({ stream, problem: "it is finished" })
      case "Unread":
        return yield* new StreamNotFound({ stream, problem: "no consumer was given it yet, as `run` would be" })
      default:
        return yield* new AlreadyClaimed({ stream })
    }
  })

  const claim = (name: string) =>
    Effect.suspend(() => {
      const claimed: Array<OwnedStream> = []
      // The caller is gone, and nobody else would end the lease
      return Effect.onInterrupt(claiming(name, claimed), () =>
        Effect.forEach(claimed, (owned) => FiberSet.run(undoing, ends.yield(owned)), { discard: true }))
    })

  /** Whether the caller is the handler of this stream, which cannot wait for its own end. */
  const isHandlerOf = (owned: OwnedStream) =>
    Effect.map(
      Effect.serviceOption(StreamLease),
      Option.exists(({ entry, token }) => entry === owned.entry && token === owned.token)
    )

  const doneStream = (name: string) =>
    Effect.gen(function*() {
      const owned = yield* find(name)
      if (!owned.hasHandler || (yield* isHandlerOf(owned))) return yield* ends.done(owned)
      owned.isMarkedDone = true
      yield* revocation.stop(table, [owned])
      // It may have ended otherwise meanwhile
      if (owned.outcome !== "done") return yield* owned.over
    })

  const release = (name: string) =>
    Effect.gen(function*() {
      const owned = yield* find(name)
      // Other members try first
      leaseTaker.skipFor(owned.entry, config.sweepInterval)
      if (!owned.hasHandler) return yield* ends.release(owned)
      if (!(yield* isHandlerOf(owned))) return yield* revocation.stop(table, [owned])
      owned.stop()
      yield* Effect.yieldNow
    })

  const announceAll: StreamClient["Service"]["announceAll"] = Effect.fnUntraced(function*(inputs) {
    const announcements = yield* Effect.forEach(
      inputs,
      ({ info, stream }) => Effect.map(streamName(stream), (stream) => ({ stream, info: info ?? {} }))
    )
    const answers = yield* store.announce(announcements)
    return answers.map((answer, i) => ({ stream: announcements[i]!.stream, ...answer }))
  })

  const redriveAll: StreamClient["Service"]["redriveAll"] = Effect.fnUntraced(
    function*({ filter = () => true, limit = Infinity } = {}) {
      const { deadLetters } = yield* store.inspect
      let redriven = 0
      let after: EntryId | undefined
      for (let seen = 0; seen < deadLetters && redriven < limit;) {
        const page = yield* store.deadLetters(after, Math.min(100, deadLetters - seen))
        if (page.length === 0) break
        seen += page.length
        after = page[page.length - 1]!.id
        for (const letter of page) {
          if (redriven < limit && filter(letter) && (yield* store.redrive(letter.id))) redriven++
        }
      }
      return redriven
    }
  )

  const run: StreamClient["Service"]["run"] = <A, E, R, R2>(handler: Handler<A, E, R>, options?: RunOptions<R2>) =>
    Effect.scoped(Effect.gen(function*() {
      const body = Effect.isEffect(handler) ? () => handler : handler
      const fibers = yield* FiberSet.make<void>()
      const start = yield* FiberSet.runtime(fibers)<Exclude<R, StreamLease> | R2>()
      return yield* consumption.start({
        operation: "run",
        onStarted: () => {
          isConsumer = true
        },
        deliver: (owned) => {
          owned.hasHandler = true
          start(Effect.catchCause(
            handlerRunner.runHandler(client, leaseTaker, owned, body, options ?? {}),
            (cause) =>
              Effect.andThen(
                log.error("The runner of a data stream crashed; its lease runs out", cause),
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
      const error = Option.getOrUndefined(Exit.findErrorOption(exit))
      if (error?._tag === "InvalidConfig") return own.fail(error)
      return own.end(error === undefined ? "the client is closed" : error.message)
    }))
    return own.stream
  }))

  return {
    ...administration.make(store),
    id: config.consumer,
    run,
    notifications,
    announceAll,
    claim,
    doneStream,
    release,
    owned: Effect.sync(() => table.held().map(leaseOf)),
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
