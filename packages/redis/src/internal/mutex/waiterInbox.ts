/**
 * Delivers messages to waiters. All waiters in a layer share one channel. A waiter subscribes to its own channel only
 * if contenders from another implementation take part. `store` calls `make` once, and each `Mutex` layer on that store
 * opens the channel for its key.
 *
 * A waiter's id is `<counter>-<key>:<process>`. The key is random, and identifies the layer and its channel.
 */
import type { LeaseId, MutexName } from "@effect-simba/core/MutexName"
import type { MutexStore, WakeUp } from "@effect-simba/core/MutexStore"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"
import { reader, subscribe } from "../client/decode.ts"
import * as log from "../client/log.ts"
import { reportMalformed } from "../client/malformedInput.ts"
import * as keys from "./keys.ts"
import { ContenderMessage, type InboxMessage, readInboxMessage } from "./messages.ts"
import { attemptOf } from "./pendingReleases.ts"

const readContenderMessage = reader("a message on a contender channel", ContenderMessage)

const toWakeUp = (message: ContenderMessage | Exclude<InboxMessage, { readonly _tag: "Forced" }>): WakeUp =>
  message._tag === "PollAfter"
    ? { _tag: "PollAfter", delay: Duration.millis(message.millis) }
    : { _tag: "YourTurn", grant: message._tag === "Granted" ? message.grant : undefined }

const gap: WakeUp = { _tag: "Gap" }

interface Waiter {
  readonly key: string
  readonly notify: (wakeUp: WakeUp) => void
  /** The waiter's subscription to its own channel. */
  own: Fiber.Fiber<unknown> | undefined
}

/**
 * Called with an owner's id when its mutex was forcibly released. This is only a hint: the layer immediately sends a
 * renewal, and the reply decides.
 */
type OnForced = (id: string) => void

export interface WaiterInbox {
  readonly open: MutexStore["Service"]["inbox"]
  /** Subscribes a waiter to its own channel. Call it when the waiter detects contenders from another implementation. */
  readonly noteForeign: (mutex: MutexName, id: LeaseId) => void
}

/**
 * `onStranger` is called when a message arrives for an id without a waiter. It receives the part of the id before the
 * colon. If that id's release failed or was overtaken by a late request, `store` repeats it (`pendingReleases`).
 */
export const make = Effect.fnUntraced(function*(
  subscriber: Subscriber["Service"],
  onStranger: (attempt: string) => void
): Effect.fn.Return<WaiterInbox, never, Scope.Scope> {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  /** Waiters by the unique parts of their ids. An object for the reason given in `localQueues`. */
  const waiters: Record<string, Waiter> = Object.create(null)

  const open = Effect.fnUntraced(function*(key: string) {
    const forced = new Set<OnForced>()
    const report = Effect.runForkWith(yield* Effect.context<never>())
    const channel = keys.inboxChannel(key)
    const deliver = (message: InboxMessage) => {
      if (message._tag === "Forced") return forced.forEach((onForced) => onForced(message.id))
      const attempt = `${message.counter}-${key}`
      const waiter = waiters[attempt]
      if (waiter === undefined) onStranger(attempt)
      else waiter.notify(toWakeUp(message))
    }
    // Yield between chunks, because there may be thousands of waiters
    const notifyAll = Effect.suspend(() =>
      Effect.forEach(Arr.chunksOf(Object.entries(waiters).filter(([, waiter]) => waiter.key === key), 32), (some) => {
        for (const [attempt, waiter] of some) if (waiters[attempt] === waiter) waiter.notify(gap)
        return Effect.yieldNow
      }, { discard: true })
    )
    const hear = (text: string | undefined) => {
      if (text === undefined) return void report(notifyAll)
      const message = readInboxMessage(text)
      if (Exit.isSuccess(message)) deliver(message.value)
      else report(Effect.catch(message, (error) => reportMalformed(channel, error)))
    }
    if (subscriber.listen !== undefined) yield* subscriber.listen(channel, hear)
    else {
      const notices = yield* subscriber.subscribe(channel)
      yield* Effect.map(Queue.takeAll(notices), (all) => {
        for (const notice of all) hear(notice._tag === "Gap" ? undefined : notice.text)
      }).pipe(Effect.forever, Effect.forkScoped)
    }
    return forced
  })
  const inboxes = yield* RcMap.make({ lookup: open })

  /**
   * Returns a layer's inbox. A failed inbox stays in the map until its last user leaves. The next user then opens a new
   * one.
   */
  const inboxByKey = Effect.fnUntraced(function*(key: string) {
    const scope = yield* Scope.fork(yield* Effect.scope)
    return yield* Effect.onError(
      Scope.provide(RcMap.get(inboxes, key), scope),
      (cause) => Scope.close(scope, Exit.failCause(cause))
    )
  })

  /**
   * Subscribes a waiter to its own channel. Then reports a gap, because earlier messages were missed. If the
   * subscription fails, the waiter retries on its next refused acquire.
   */
  const subscribeOwn = Effect.fnUntraced(function*(mutex: MutexName, id: LeaseId, { notify }: Waiter) {
    const { next } = yield* subscribe(subscriber, keys.contenderChannel(mutex, id), readContenderMessage, {
      gap,
      message: toWakeUp
    })
    notify(gap)
    return yield* Effect.forever(Effect.map(next, notify))
  })

  /** Adds a waiter. Returns a function that removes it. */
  const enter = (key: string, id: LeaseId, notify: Waiter["notify"]) => {
    const waiter: Waiter = { key, notify, own: undefined }
    const attempt = attemptOf(id)
    waiters[attempt] = waiter
    return () => {
      delete waiters[attempt]
      waiter.own?.interruptUnsafe()
    }
  }

  return {
    open: Effect.fnUntraced(function*(key, onForced) {
      const forced = yield* inboxByKey(key)
      yield* Effect.acquireRelease(
        Effect.sync(() => forced.add(onForced)),
        () => Effect.sync(() => forced.delete(onForced))
      )
      // `bound` limits a waiter's sleep. It is set if the subscriber cannot detect gaps
      return { listen: (_mutex, id, listener) => enter(key, id, listener), bound: subscriber.bound }
    }),
    noteForeign: (mutex, id) => {
      const attempt = attemptOf(id)
      const waiter = waiters[attempt]
      if (waiter === undefined || waiter.own !== undefined) return
      waiter.own = run(
        subscribeOwn(mutex, id, waiter).pipe(
          Effect.scoped,
          Effect.catch((error) => log.debug("Cannot subscribe to a waiter's channel", error))
        )
      )
      waiter.own.addObserver(() => waiter.own = undefined)
      // The waiter may have left in the meantime
      if (waiters[attempt] !== waiter) waiter.own?.interruptUnsafe()
    }
  }
})
