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

const readContenderMessage = reader("a message on a contender channel", ContenderMessage)

const toWakeUp = (message: ContenderMessage | Exclude<InboxMessage, { readonly _tag: "Forced" }>): WakeUp =>
  message._tag === "PollAfter"
    ? { _tag: "PollAfter", delay: Duration.millis(message.millis) }
    : { _tag: "YourTurn", grant: message._tag === "Granted" ? message.grant : undefined }

const gap: WakeUp = { _tag: "Gap" }

interface Waiter {
  readonly notify: (wakeUp: WakeUp) => void
  /** The waiter's subscription to its own channel. */
  own: Fiber.Fiber<unknown> | undefined
}

interface Inbox {
  /** Waiters by the counters in their ids. */
  readonly waiters: Map<string, Waiter>
  /**
   * Called with an owner's id when its mutex was forcibly released. This is only a hint: the layer immediately sends a
   * renewal, and the reply decides.
   */
  readonly forced: Set<(id: string) => void>
}

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
  const waiting = new Map<string, Waiter>()

  const open = Effect.fnUntraced(function*(key: string) {
    const inbox: Inbox = { waiters: new Map(), forced: new Set() }
    const report = Effect.runForkWith(yield* Effect.context<never>())
    const channel = keys.inboxChannel(key)
    const deliver = (message: InboxMessage) => {
      if (message._tag === "Forced") return inbox.forced.forEach((onForced) => onForced(message.id))
      const waiter = inbox.waiters.get(message.counter)
      if (waiter === undefined) onStranger(`${message.counter}-${key}`)
      else waiter.notify(toWakeUp(message))
    }
    // Yield between chunks, because there may be thousands of waiters
    const notifyAll = Effect.suspend(() =>
      Effect.forEach(Arr.chunksOf(inbox.waiters, 32), (waiters) => {
        for (const [counter, waiter] of waiters) if (inbox.waiters.get(counter) === waiter) waiter.notify(gap)
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
    return inbox
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
  const enter = (inbox: Inbox, id: LeaseId, notify: Waiter["notify"]) => {
    const waiter: Waiter = { notify, own: undefined }
    const counter = id.slice(0, id.indexOf("-"))
    inbox.waiters.set(counter, waiter)
    waiting.set(id, waiter)
    return () => {
      inbox.waiters.delete(counter)
      waiting.delete(id)
      waiter.own?.interruptUnsafe()
    }
  }

  return {
    open: Effect.fnUntraced(function*(key, onForced) {
      const inbox = yield* inboxByKey(key)
      yield* Effect.acquireRelease(
        Effect.sync(() => inbox.forced.add(onForced)),
        () => Effect.sync(() => inbox.forced.delete(onForced))
      )
      // `bound` limits a waiter's sleep. It is set if the subscriber cannot detect gaps
      return { listen: (_mutex, id, listener) => enter(inbox, id, listener), bound: subscriber.bound }
    }),
    noteForeign: (mutex, id) => {
      const waiter = waiting.get(id)
      if (waiter === undefined || waiter.own !== undefined) return
      waiter.own = run(
        subscribeOwn(mutex, id, waiter).pipe(
          Effect.scoped,
          Effect.catch((error) => log.debug("Cannot subscribe to a waiter's channel", error))
        )
      )
      waiter.own.addObserver(() => waiter.own = undefined)
      // The waiter may have left in the meantime
      if (waiting.get(id) !== waiter) waiter.own?.interruptUnsafe()
    }
  }
})
