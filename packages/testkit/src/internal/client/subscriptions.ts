/**
 * The subscriptions of a fake client. They share one connection, as in the ioredis layer. After every reconnect, each
 * subscription receives a gap.
 */
import { BackendError } from "@effect-simba/core/SimbaError"
import type { Notice, Subscriber } from "@effect-simba/core/Subscriber"
import { ReplyError } from "@effect-simba/fake-redis/Engine"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { Connection, type Settings } from "./connection.ts"
import type * as Redis from "./effectRedis.ts"

const capacity = 256
const page = 500

/** The interval between heartbeats. A heartbeat fails if its reply does not arrive within the command timeout. */
const heartbeatMillis = 3000

type Listener = (message: string | undefined) => void

const gap: Notice = { _tag: "Gap" }

const offer = (queue: Queue.Queue<Notice>, notice: Notice) => {
  if (Queue.isFullUnsafe(queue)) {
    while (Queue.sizeUnsafe(queue) > 0) Queue.takeUnsafe(queue)
    Queue.offerUnsafe(queue, gap)
  }
  Queue.offerUnsafe(queue, notice)
}

const passing = /\b(LOADING|BUSY|READONLY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN)\b/

const backendError = (operation: string, cause: unknown) =>
  new BackendError({
    operation,
    isRetryable: !(cause instanceof ReplyError) || passing.test(cause.message),
    cause
  })

export interface Subscriptions {
  readonly listen: (channel: string, listener: Listener) => Effect.Effect<void, BackendError, Scope.Scope>
  readonly subscribe: Subscriber["Service"]["subscribe"]
}

export const make = Effect.fnUntraced(function*(settings: Settings) {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const { host } = settings
  const link = settings.server.link(settings.client)
  const connection = new Connection(settings, "subscriber")
  const listeners = new Map<string, Set<Listener>>()
  const opening = new Set<(exit: Exit.Exit<void, BackendError>) => void>()
  let opened = false

  const notifyAll = (channels: ReadonlyArray<string>) => {
    for (const channel of channels) listeners.get(channel)?.forEach((listener) => listener(undefined))
  }

  const call = (channels: ReadonlyArray<string>): Effect.Effect<void, BackendError> =>
    connection.send("SUBSCRIBE", ...channels).pipe(
      Effect.asVoid,
      Effect.mapError((error: Redis.RedisError) => backendError("subscribe", error.cause))
    )

  const restore = Effect.gen(function*() {
    const channels = [...listeners.keys()]
    for (let i = 0; i < channels.length; i += page) {
      const some = channels.slice(i, i + page)
      yield* call(some)
      notifyAll(some)
    }
  }).pipe(Effect.catchCause(() =>
    Effect.sync(() => {
      if (connection.state === "ready") connection.replace()
    })
  ))

  const settle = (exit: Exit.Exit<void, BackendError>) => {
    const waiting = [...opening]
    opening.clear()
    for (const resume of waiting) resume(exit)
  }

  connection.onPush = (push) => {
    if (push._tag === "message") listeners.get(push.channel)?.forEach((listener) => listener(push.message))
  }
  connection.onReady = () => {
    if (opened) return void run(restore)
    opened = true
    settle(Exit.void)
  }

  /** Models the heartbeat. If its reply does not arrive, the connection counts as dead. */
  const unwatch = link.onHold(() => {
    if (!opened) return
    host.timers.at(host.timers.now() + host.random() * heartbeatMillis + settings.commandTimeoutMillis, () => {
      const held = link.isHeld("requests") || link.isHeld("replies")
      if (held && connection.state === "ready") connection.replace()
    })
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      unwatch()
      connection.close()
    })
  )

  /** Opens the connection for the first subscription. Waits for at most the connect timeout. */
  const open = Effect.suspend((): Effect.Effect<void, BackendError> => {
    if (opened) return Effect.void
    if (connection.state === "closed") connection.connect()
    if (opened) return Effect.void
    return Effect.callback<void, BackendError>((resume) => {
      const timer = host.timers.at(host.timers.now() + settings.connectTimeout, () => {
        opening.delete(done)
        resume(Effect.fail(backendError("connect the subscriber", new Error("connect ETIMEDOUT"))))
      })
      const done = (exit: Exit.Exit<void, BackendError>) => {
        timer.cancel()
        resume(exit)
      }
      opening.add(done)
      return Effect.sync(() => {
        timer.cancel()
        opening.delete(done)
      })
    })
  })

  const forget = (channel: string, listener: Listener) => {
    const set = listeners.get(channel)
    if (set === undefined || !set.delete(listener) || set.size > 0) return
    listeners.delete(channel)
    if (connection.state === "ready") run(Effect.ignore(connection.send("UNSUBSCRIBE", channel)))
  }

  const listen: Subscriptions["listen"] = (channel, listener) =>
    Effect.andThen(
      open,
      Effect.andThen(
        Effect.acquireRelease(
          Effect.sync(() => {
            const set = listeners.get(channel) ?? new Set()
            listeners.set(channel, set.add(listener))
          }),
          () => Effect.sync(() => forget(channel, listener))
        ),
        Effect.onError(call([channel]), () => Effect.sync(() => forget(channel, listener)))
      )
    )

  const subscribe: Subscriptions["subscribe"] = Effect.fnUntraced(function*(channel) {
    const queue = yield* Queue.bounded<Notice>(capacity)
    yield* Effect.addFinalizer(() => Queue.shutdown(queue))
    yield* listen(channel, (text) => offer(queue, text === undefined ? gap : { _tag: "Message", channel, text }))
    return queue
  })

  return { listen, subscribe } satisfies Subscriptions
})
