/**
 * Subscribes to channels on one server, with one connection for all of a layer's subscriptions. After every reconnect,
 * all listeners receive a gap. A heartbeat detects half-open connections. Used by `driver` for a single server, and by
 * `clusterSubscriptions` for each primary.
 */
import type { BackendError } from "@effect-simba/core/SimbaError"
import type { Notice } from "@effect-simba/core/Subscriber"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { Redis as Client } from "ioredis"
import { DriverError } from "../driverError.ts"
import type * as Redis from "../effectRedis.ts"
import { backendError, fromRedis } from "../errors.ts"
import * as noticeQueue from "../noticeQueue.ts"
import { node } from "./commands.ts"
import type { OutageLog } from "./outageLog.ts"
import { onWallClock } from "./wallClock.ts"

/** The maximum number of channels per SUBSCRIBE after a reconnect. */
const pageSize = 500

const heartbeatInterval = Duration.seconds(3)

type Listener = (message: string | undefined) => void

export interface Subscriptions {
  /** Returns why messages are not arriving; undefined if they are, or if nobody is subscribed. */
  readonly problem: () => BackendError | undefined
  readonly listen: (channel: string, listener: Listener) => Effect.Effect<void, BackendError, Scope.Scope>
  readonly subscribe: (channel: string) => Effect.Effect<Queue.Dequeue<Notice>, BackendError, Scope.Scope>
}

const gap: Notice = { _tag: "Gap" }

export const queued = (listen: Subscriptions["listen"]): Pick<Subscriptions, "listen" | "subscribe"> => ({
  listen,
  subscribe: Effect.fnUntraced(function*(channel) {
    const queue = yield* noticeQueue.make
    yield* Effect.addFinalizer(() => Queue.shutdown(queue))
    yield* listen(
      channel,
      (text) => noticeQueue.offer(queue, text === undefined ? gap : { _tag: "Message", channel, text })
    )
    return queue
  })
})

/**
 * `open` returns a connection that does not reconnect by itself. This module replaces a lost connection, and reports
 * the gap.
 */
export const make = Effect.fnUntraced(function*(
  open: Effect.Effect<Client, Redis.RedisError, Scope.Scope>,
  commandTimeout: Duration.Duration,
  outage: OutageLog
) {
  const fork = yield* FiberSet.makeRuntime<never, void, BackendError>()
  const listeners = new Map<string, Set<Listener>>()
  /** Completes when the first connection is ready, or fails if that connection fails. */
  let first: Deferred.Deferred<void, BackendError> | undefined
  let connected: Client | undefined
  let problem: BackendError | undefined

  const call = (operation: string, client: Client, command: string, ...args: ReadonlyArray<string>) =>
    Effect.mapError(node(client, commandTimeout)(command, ...args), fromRedis(operation))

  const subscribeTo = (client: Client, channels: ReadonlyArray<string>) =>
    call("subscribe", client, "subscribe", ...channels)

  /** Unsubscribes in the background. A failure is harmless, because a closed connection has no subscriptions. */
  const leave = (client: Client | undefined, channel: string) => {
    client?.unsubscribe(channel).catch(() => undefined)
  }

  const connect = Effect.gen(function*() {
    const client = yield* Effect.mapError(open, fromRedis("connect the subscriber"))
    client.on("message", (channel: string, message: string) => {
      listeners.get(channel)?.forEach((listener) => listener(message))
    })
    // From now on, new subscriptions use this connection. Existing ones are restored page by page
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        connected = client
      }),
      () =>
        Effect.sync(() => {
          connected = undefined
        })
    )
    const channels = [...listeners.keys()]
    for (let i = 0; i < channels.length; i += pageSize) {
      // Listeners may have unsubscribed in the meantime
      const some = channels.slice(i, i + pageSize).filter((channel) => listeners.has(channel))
      if (some.length === 0) continue
      yield* subscribeTo(client, some)
      for (const channel of some) {
        const restored = listeners.get(channel)
        if (restored === undefined) leave(client, channel)
        else restored.forEach((listener) => listener(undefined))
      }
    }
    return client
  })

  const ended = (client: Client) =>
    Effect.callback<void>((resume) => {
      if (client.status === "end") return resume(Effect.void)
      client.once("end", () => resume(Effect.void))
    })

  const watch = (client: Client) => {
    const heartbeat = Effect.delay(call("ping the subscriber", client, "ping"), heartbeatInterval)
    return Effect.raceFirst(ended(client), Effect.forever(heartbeat))
  }

  const isDown = () => problem ?? backendError("subscribe", new DriverError("the subscriber connection is down", true))

  /** Keeps a connection open until the layer closes. Stops if the first connection fails. */
  const supervise = (opened: Deferred.Deferred<void, BackendError>) =>
    Effect.gen(function*() {
      let failures = 0
      for (;;) {
        const exit = yield* Effect.exit(Effect.scoped(Effect.gen(function*() {
          const client = yield* connect
          failures = 0
          problem = undefined
          outage.back()
          Deferred.doneUnsafe(opened, Exit.void)
          yield* watch(client)
        })))
        if (!Deferred.isDoneUnsafe(opened)) return yield* exit
        problem = Option.getOrUndefined(Exit.findErrorOption(exit)) ?? problem
        outage.lost(problem)
        yield* Effect.sleep(Duration.millis(Math.min(50 * 2 ** failures++, 1000)))
      }
    }).pipe(onWallClock)

  /**
   * The layer owns the first connection, so it stays open for others if a listener unsubscribes while it is opening.
   */
  const start = (): Deferred.Deferred<void, BackendError> => {
    const opened = first = Deferred.makeUnsafe<void, BackendError>()
    fork(supervise(opened)).addObserver((exit) => {
      if (Deferred.isDoneUnsafe(opened)) return
      first = undefined
      const failed = Exit.isFailure(exit) && !Cause.hasInterrupts(exit.cause)
      Deferred.doneUnsafe(opened, failed ? exit : Exit.fail(isDown()))
    })
    return opened
  }

  const connectedOnce = Effect.suspend(() => {
    // Check and start in one step. Otherwise two listeners could each open a connection
    if (first === undefined) return Deferred.await(start())
    return connected === undefined && Deferred.isDoneUnsafe(first) ? Effect.fail(isDown()) : Deferred.await(first)
  })

  const forget = (channel: string, listener: Listener) => {
    const set = listeners.get(channel)
    if (set === undefined || !set.delete(listener) || set.size > 0) return
    listeners.delete(channel)
    leave(connected, channel)
  }

  const listen: Subscriptions["listen"] = (channel, listener) =>
    connectedOnce.pipe(
      Effect.andThen(Effect.acquireRelease(
        Effect.sync(() => {
          const set = listeners.get(channel) ?? new Set()
          listeners.set(channel, set.add(listener))
        }),
        () => Effect.sync(() => forget(channel, listener))
      )),
      // Each listener waits until its own subscription is acknowledged
      Effect.andThen(
        Effect.suspend(() => connected === undefined ? Effect.fail(isDown()) : subscribeTo(connected, [channel]))
          .pipe(Effect.onError(() => Effect.sync(() => forget(channel, listener))))
      )
    )

  return {
    ...queued(listen),
    problem: () => first !== undefined && connected === undefined ? isDown() : undefined
  } satisfies Subscriptions
})
