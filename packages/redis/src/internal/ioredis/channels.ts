/**
 * All subscriptions of a layer on one connection: one subscription per channel however many listen, every reconnect a gap
 * for everybody, and a heartbeat that notices when the connection is dead without having closed.
 */
import type { BackendError } from "@effect-simba/core/Errors"
import type { Notice } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Redis as Client } from "ioredis"
import { backendError, fromRedis } from "../redisFailure.ts"

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

export const make = Effect.fnUntraced(function*(open: Effect.Effect<Client, Redis.RedisError, Scope.Scope>) {
  const scope = yield* Effect.scope
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const opening = Semaphore.makeUnsafe(1)
  const listeners = new Map<string, Set<Listener>>()
  let connected: Client | undefined

  const tellAll = (channels: Iterable<string>) => {
    for (const channel of channels) listeners.get(channel)?.forEach((listener) => listener(undefined))
  }

  const call = (client: Client, channels: ReadonlyArray<string>) =>
    Effect.callback<void, BackendError>((resume) => {
      client.subscribe(...channels).then(
        () => resume(Effect.void),
        (cause: unknown) => resume(Effect.fail(backendError("subscribe", cause)))
      )
    })

  /** A connection that could not take all channels back is dropped, so that the next one tries again. */
  const restore = (client: Client) =>
    Effect.gen(function*() {
      const channels = [...listeners.keys()]
      for (let i = 0; i < channels.length; i += page) {
        const some = channels.slice(i, i + page)
        yield* call(client, some)
        tellAll(some)
      }
    }).pipe(Effect.catchCause((cause) =>
      Effect.andThen(
        Effect.logDebug("Subscriptions could not be restored", cause),
        Effect.sync(() => {
          if (client.status === "ready") client.disconnect(true)
        })
      )
    ))

  const beat = (client: Client) =>
    Effect.callback<void>((resume) => {
      const alive = () => resume(Effect.void)
      if (client.status !== "ready") return alive()
      client.ping().then(alive, () => {
        if (client.status === "ready") client.disconnect(true)
        alive()
      })
    })

  const connect = Effect.gen(function*() {
    const client = yield* Effect.mapError(Scope.provide(open, scope), fromRedis("connect the subscriber"))
    client.on("message", (channel: string, message: string) => {
      listeners.get(channel)?.forEach((listener) => listener(message))
    })
    client.on("ready", () => run(restore(client)))
    yield* Effect.forkIn(Effect.forever(Effect.delay(beat(client), heartbeat)), scope)
    return connected = client
  })

  const subscriber = opening.withPermit(
    Effect.suspend(() => connected === undefined ? connect : Effect.succeed(connected))
  )

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
        Effect.onError(call(client, [channel]), () => Effect.sync(() => forget(channel, listener)))
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
