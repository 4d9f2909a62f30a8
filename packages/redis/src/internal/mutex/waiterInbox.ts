/**
 * What waiters are told. Each layer listens on one channel for all of its waiters, from its beginning on, so that a wait
 * costs no subscription. Contenders of another implementation tell a waiter on a channel of its own, which is listened
 * to where they are seen.
 */
import { type ContenderId, inboxOf, type MutexName } from "@effect-simba/core/MutexName"
import type { MutexStore, WakeUp } from "@effect-simba/core/MutexStore"
import type { BackendError } from "@effect-simba/core/SimbaError"
import type { Subscriber, Subscription } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"
import { separator } from "../client/codecs.ts"
import { reading, receiving, unreadable } from "../client/decode.ts"
import * as RedisKeys from "./keys.ts"
import * as RedisWire from "./messages.ts"
import { decodeContender, type Told } from "./text.ts"

const readContenderMessage = reading("a message on a contender channel", RedisWire.ContenderMessage)
const readInboxMessage = reading("a message on the channel of a layer", RedisWire.InboxMessage)

const toWakeUp = (message: Told): WakeUp =>
  message._tag === "Released"
    ? { _tag: "YourTurn", from: message.owner }
    : { _tag: "LookIn", delay: Duration.millis(message.millis) }

const gap: WakeUp = { _tag: "Gap" }

/** Hints that a waiter may leave unread. Where there would be more, the last one is a gap, which says no less. */
const unread = 16

/** No queue of Effect's: whoever waits goes on at once, not a turn of the scheduler later. */
class Waiter {
  readonly scope: Scope.Scope
  /** Whether its own channel is listened to. */
  listens = false
  private readonly hints: Array<WakeUp> = []
  private resume: ((wakeUp: Effect.Effect<WakeUp>) => void) | undefined

  constructor(scope: Scope.Scope) {
    this.scope = scope
  }

  tell(wakeUp: WakeUp): void {
    const { hints, resume } = this
    if (resume === undefined) {
      return void (hints[Math.min(hints.length, unread - 1)] = hints.length < unread - 1 ? wakeUp : gap)
    }
    this.resume = undefined
    resume(Effect.succeed(wakeUp))
  }

  readonly next = Effect.callback<WakeUp>((resume) => {
    const hint = this.hints.shift()
    if (hint !== undefined) return resume(Effect.succeed(hint))
    this.resume = resume
    return Effect.sync(() => {
      if (this.resume === resume) this.resume = undefined
    })
  })
}

interface Mailbox {
  readonly waiters: Map<string, Waiter>
  readonly forced: Set<Queue.Queue<{ readonly id: string }>>
}

export interface WaiterInbox {
  readonly wakeUps: (
    mutex: MutexName,
    id: ContenderId
  ) => Effect.Effect<Subscription<WakeUp>, BackendError, Scope.Scope>
  readonly forced: MutexStore["Service"]["inbox"]
  /** A waiter has seen contenders of another implementation: from now on it listens to them, too. */
  readonly sawOthers: (mutex: MutexName, id: ContenderId) => void
}

/** `onStranger` learns of a message for an id that does not wait here, or no longer. */
export const make = Effect.fnUntraced(function*(
  subscriber: Subscriber["Service"],
  onStranger: (id: string) => void
): Effect.fn.Return<WaiterInbox, never, Scope.Scope> {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const waiting = new Map<string, Waiter>()

  const open = Effect.fnUntraced(function*(key: string) {
    const mailbox: Mailbox = { waiters: new Map(), forced: new Set() }
    const report = Effect.runForkWith(yield* Effect.context<never>())
    const channel = RedisKeys.inboxChannel(key)
    const deliver = (message: RedisWire.InboxMessage) => {
      if (message._tag === "Forced") return mailbox.forced.forEach((queue) => Queue.offerUnsafe(queue, message))
      const waiter = mailbox.waiters.get(message.id)
      if (waiter === undefined) onStranger(message.id)
      else waiter.tell(toWakeUp(message))
    }
    const hear = (text: string | undefined) => {
      if (text === undefined) return mailbox.waiters.forEach((waiter) => waiter.tell(gap))
      // The usual: something that the codec would find right, for somebody who waits
      const end = Math.max(0, text.indexOf(separator))
      const waiter = mailbox.waiters.get(text.slice(0, end))
      const told = waiter === undefined ? "" : decodeContender(text.slice(end + separator.length))
      if (typeof told !== "string") return waiter!.tell(toWakeUp(told))
      const message = readInboxMessage(text)
      if (Exit.isSuccess(message)) deliver(message.value)
      else report(Effect.forEach(Option.toArray(Exit.findErrorOption(message)), (error) => unreadable(channel, error)))
    }
    if (subscriber.listen !== undefined) yield* subscriber.listen(channel, hear)
    else {
      const notices = yield* subscriber.subscribe(channel)
      // All that has come in one go: messages for many waiters come at once
      yield* Effect.map(Queue.takeAll(notices), (all) => {
        for (const notice of all) hear(notice._tag === "Gap" ? undefined : notice.text)
      }).pipe(Effect.forever, Effect.forkScoped)
    }
    return mailbox
  })
  const mailboxes = yield* RcMap.make({ lookup: open })

  /** One that could not be opened is forgotten by those who asked for it, so that the next to ask opens it anew. */
  const mailboxOf = Effect.fnUntraced(function*(key: string) {
    const scope = yield* Scope.fork(yield* Effect.scope)
    return yield* Effect.onError(
      Scope.provide(RcMap.get(mailboxes, key), scope),
      (cause) => Scope.close(scope, Exit.failCause(cause))
    )
  })

  /** Looks again once it listens: something may have been said before. Where it cannot, the next refusal tries again. */
  const listen = Effect.fnUntraced(function*(mutex: MutexName, id: ContenderId, waiter: Waiter) {
    const { next } = yield* Effect.onError(
      receiving(subscriber, RedisKeys.contenderChannel(mutex, id), readContenderMessage, { gap, message: toWakeUp }),
      () => Effect.sync(() => (waiter.listens = false))
    )
    waiter.tell(gap)
    return yield* Effect.forever(Effect.map(next, (wakeUp) => waiter.tell(wakeUp)))
  })

  return {
    wakeUps: Effect.fnUntraced(function*(_mutex, id) {
      const mailbox = yield* mailboxOf(inboxOf(id))
      const waiter = new Waiter(yield* Effect.scope)
      mailbox.waiters.set(id, waiter)
      waiting.set(id, waiter)
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          mailbox.waiters.delete(id)
          waiting.delete(id)
        })
      )
      return { next: waiter.next, bound: subscriber.bound }
    }),
    forced: Effect.fnUntraced(function*(key) {
      const mailbox = yield* mailboxOf(key)
      const queue = yield* Queue.unbounded<{ readonly id: string }>()
      mailbox.forced.add(queue)
      yield* Effect.addFinalizer(() => Effect.sync(() => mailbox.forced.delete(queue)))
      return { next: Queue.take(queue) }
    }),
    sawOthers: (mutex, id) => {
      const waiter = waiting.get(id)
      if (waiter === undefined || waiter.listens) return
      waiter.listens = true
      run(
        listen(mutex, id, waiter).pipe(
          Effect.scoped,
          Effect.ignore({ log: "Debug" }),
          Effect.forkIn(waiter.scope)
        )
      )
    }
  }
})
