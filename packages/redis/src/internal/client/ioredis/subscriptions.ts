/**
 * All subscriptions of a layer on one connection: one subscription per channel however many listen, every reconnect a gap
 * for everybody, and a heartbeat that notices when the connection is dead without having closed.
 */
import type { BackendError } from "@effect-simba/core/SimbaError"
import type { Notice } from "@effect-simba/core/Subscriber"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Redis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Redis as Client } from "ioredis"
import { backendError, fromRedis } from "../errors.ts"

/** How many notices a slow reader may be behind before the oldest are dropped and a gap says so. */
const capacity = 256

/** Channels of one SUBSCRIBE when all are restored. */
const page = 500

const heartbeat = Duration.seconds(3)

type Listener = (message: string | undefined) => void

export interface Channels {
  readonly listen: (channel: string, listener: Listener) => Effect.Effect<void, BackendError, Scope.Scope>
  readonly subscribe: (channel: string) => Effect.Effect<Queue.Dequeue<Notice>, BackendError, Scope.Scope>
}

const gap: Notice = { _tag: "Gap" }

const offer = (queue: Queue.Queue<Notice>, notice: Notice) => {
  if (Queue.sizeUnsafe(queue) >= capacity - 1) Queue.offerUnsafe(queue, gap)
  Queue.offerUnsafe(queue, notice)
}

/** `open` gives a connection that does not reconnect by itself: a dead one is replaced here, where the gap is known. */
export const make = Effect.fnUntraced(function*(open: Effect.Effect<Client, Redis.RedisError, Scope.Scope>) {
  const layerScope = yield* Effect.scope
  const opening = Semaphore.makeUnsafe(1)
  const listeners = new Map<string, Set<Listener>>()
  let started = false
  let connected: Client | undefined

  const subscribeTo = (client: Client, channels: ReadonlyArray<string>) =>
    Effect.callback<void, BackendError>((resume) => {
      client.subscribe(...channels).then(
        () => resume(Effect.void),
        (cause: unknown) => resume(Effect.fail(backendError("subscribe", cause)))
      )
    })

  const connect = Effect.gen(function*() {
    const client = yield* Effect.mapError(open, fromRedis("connect the subscriber"))
    client.on("message", (channel: string, message: string) => {
      listeners.get(channel)?.forEach((listener) => listener(message))
    })
    // From here on new subscriptions go to this connection; those that it finds are restored one page after the other
    connected = client
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        connected = undefined
      })
    )
    const channels = [...listeners.keys()]
    for (let i = 0; i < channels.length; i += page) {
      // Some may have been left while others were restored
      const some = channels.slice(i, i + page).filter((channel) => listeners.has(channel))
      if (some.length === 0) continue
      yield* subscribeTo(client, some)
      for (const channel of some) listeners.get(channel)?.forEach((listener) => listener(undefined))
    }
    return client
  })

  const ended = (client: Client) =>
    Effect.callback<void>((resume) => {
      if (client.status === "end") return resume(Effect.void)
      client.once("end", () => resume(Effect.void))
    })

  /** A connection can be dead without having closed: whoever does not answer a PING is given up. */
  const beat = (client: Client) =>
    Effect.callback<void, BackendError>((resume) => {
      client.ping().then(
        () => resume(Effect.void),
        (cause: unknown) => resume(Effect.fail(backendError("ping the subscriber", cause)))
      )
    })

  const attend = (client: Client) =>
    Effect.raceFirst(ended(client), Effect.forever(Effect.delay(beat(client), heartbeat)))

  /** Keeps a connection open as long as the layer lives; `first` is told when the first one is there, or is not. */
  const supervise = (first: Deferred.Deferred<void, BackendError>) =>
    Effect.gen(function*() {
      let failures = 0
      for (;;) {
        const exit = yield* Effect.exit(Effect.scoped(Effect.gen(function*() {
          const client = yield* connect
          failures = 0
          yield* Deferred.succeed(first, undefined)
          yield* attend(client)
        })))
        if (Exit.isFailure(exit) && (yield* Deferred.failCause(first, exit.cause))) {
          started = false
          return
        }
        yield* Effect.logDebug("The subscriber connection is gone and is made again")
        yield* Effect.sleep(Duration.millis(Math.min(50 * 2 ** failures++, 1000)))
      }
    })

  const subscriber = opening.withPermit(Effect.suspend(() => {
    if (connected !== undefined) return Effect.succeed(connected)
    if (started) return Effect.fail(backendError("subscribe", new Error("the subscriber connection is down")))
    started = true
    const first = Deferred.makeUnsafe<void, BackendError>()
    return Effect.forkIn(supervise(first), layerScope).pipe(
      Effect.andThen(Deferred.await(first)),
      Effect.flatMap(() =>
        connected === undefined
          ? Effect.fail(backendError("subscribe", new Error("the subscriber connection is down")))
          : Effect.succeed(connected)
      )
    )
  }))

  const forget = (channel: string, listener: Listener) => {
    const set = listeners.get(channel)
    if (set === undefined || !set.delete(listener) || set.size > 0) return
    listeners.delete(channel)
    // Not awaited: whoever stops listening need not wait, and a closed connection has forgotten the channel anyway
    connected?.unsubscribe(channel).catch(() => undefined)
  }

  const listen: Channels["listen"] = (channel, listener) =>
    Effect.flatMap(subscriber, (client) =>
      Effect.andThen(
        Effect.acquireRelease(
          Effect.sync(() => {
            const set = listeners.get(channel) ?? new Set()
            listeners.set(channel, set.add(listener))
          }),
          () => Effect.sync(() => forget(channel, listener))
        ),
        // Repeated for each listener: the acknowledgement is what it waits for
        Effect.onError(subscribeTo(client, [channel]), () => Effect.sync(() => forget(channel, listener)))
      ))

  const subscribe: Channels["subscribe"] = Effect.fnUntraced(function*(channel) {
    const queue = yield* Queue.sliding<Notice>(capacity)
    yield* Effect.addFinalizer(() => Queue.shutdown(queue))
    yield* listen(
      channel,
      (text) => offer(queue, text === undefined ? gap : { _tag: "Message", channel, text })
    )
    return queue
  })

  return { listen, subscribe } satisfies Channels
})
