/** Runs random histories on a store, and compares the store with a small model. */
import { spareTokens } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { type Bench, type Cases, granted, ownerOf, type Party, refused } from "./bench.ts"

/** The commands in random histories. */
export const Command = Schema.TaggedUnion({
  Try: { who: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 })) },
  Wait: { who: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 })) },
  Release: { who: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 })) },
  ReleaseOwner: {},
  Requeue: { who: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 })) },
  Guard: { who: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 })) },
  Die: { who: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 })) },
  Pass: { millis: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4000 })) }
})

export type Command = typeof Command.Type

/** The full state of one mutex: the owner, the last token, and the queue. */
interface Model {
  owner: Party | undefined
  /** When the lease ends, in virtual milliseconds. Used only if the suite controls the clock. */
  until: number
  token: number
  /** Whether the owner has received its token. */
  confirmed: boolean
  readonly queue: Array<Party>
}

/**
 * Runs random commands from five contenders on the store and the model, and compares the two after each command.
 *
 * As in a store, dead waiters stay in the model's queue until they are skipped. Live waiters are subscribed.
 */
export const runHistory = Effect.fnUntraced(function*(
  bench: Bench,
  commands: ReadonlyArray<Command>,
  { countsSubscribers, live }: { readonly live: boolean } & Pick<Cases, "countsSubscribers">
) {
  const { confirm, lease, pass } = bench
  const leaseMillis = Duration.toMillis(lease)
  const confirmMillis = Duration.toMillis(confirm)
  const parties = [...bench.parties(5)]
  const model: Model = { owner: undefined, until: 0, token: 0, confirmed: false, queue: [] }
  let now = 0
  /** When each party got its ticket. */
  const queuedAt = new Map<Party, number>()
  /** Until when a store keeps the places of waiters that do not poll. */
  let keptUntil = 0
  const keepPlaces = () => {
    keptUntil = Math.max(now, model.until) + leaseMillis + confirmMillis
  }
  /** At most one tick precedes each command. */
  const allTicks = commands.length + 1

  const tick = (millis: number) =>
    live ? Effect.void : Effect.map(TestClock.adjust(Duration.millis(millis)), () => {
      now += millis
      if (model.owner !== undefined && now > model.until) model.owner = undefined
    })

  const leave = (party: Party) => {
    const index = model.queue.indexOf(party)
    if (index !== -1) model.queue.splice(index, 1)
  }

  const mint = (token: number) => {
    assert.isAbove(
      token,
      model.token + spareTokens(model.token),
      "each grant's token is beyond the last grant's stride"
    )
    model.token = token
    model.confirmed = true
  }

  /** Returns the first waiter, which receives a free mutex unless `caller` comes before it. */
  const headBefore = (caller: Party | undefined) => {
    const head = model.queue.find((party) => party.subscribed || !countsSubscribers)
    if (head === undefined || head === caller) return undefined
    return caller?.ticket !== undefined && Number(caller.ticket) < Number(head.ticket) ? undefined : head
  }

  const handOver = Effect.fnUntraced(function*(next: Party) {
    leave(next)
    model.owner = next
    const isFresh = countsSubscribers && now - queuedAt.get(next)! <= confirmMillis
    model.until = now + (isFresh ? leaseMillis : confirmMillis)
    model.confirmed = false
    while (next.subscribed) if ((yield* next.wakeUp)._tag === "YourTurn") break
  })

  const ask = Effect.fnUntraced(function*(who: number, mode: "try" | "wait") {
    const party = parties[who]!
    if (mode === "wait" && !party.subscribed) yield* party.subscribe
    const head = model.owner === undefined ? headBefore(party) : undefined
    const result = yield* party.ask(mode)
    if (head !== undefined) yield* handOver(head)
    if (model.owner === undefined || model.owner === party) {
      const { token } = granted(result)
      if (model.owner === party && model.confirmed) {
        assert.strictEqual(token, model.token, "an owner that repeats its request keeps its token")
      } else mint(token)
      model.owner = party
      model.until = now + leaseMillis
      leave(party)
      return
    }
    const { ownership, position, ticket } = refused(result)
    assert.strictEqual(ownerOf(ownership), model.owner.id)
    if (mode === "try") return assert.isUndefined(ticket, "a try-acquire gets no place")
    if (!queuedAt.has(party)) queuedAt.set(party, now)
    const ahead = model.queue.filter((other) => other !== party && Number(other.ticket) < Number(ticket))
    leave(party)
    model.queue.splice(ahead.length, 0, party)
    keepPlaces()
    assert.isAtLeast(position, ahead.filter((other) => other.subscribed).length)
    const tickets = model.queue.map((other) => Number(other.ticket))
    assert.deepStrictEqual(
      tickets,
      [...new Set(tickets)].sort((a, b) => a - b),
      "tickets are unique and in order of arrival"
    )
  })

  const release = Effect.fnUntraced(function*(who: number) {
    const party = parties[who]!
    const ownership = yield* party.release
    leave(party)
    if (model.owner === party) model.owner = undefined
    const head = model.owner === undefined ? headBefore(undefined) : undefined
    if (head !== undefined) yield* handOver(head)
    assert.strictEqual(ownerOf(ownership), model.owner?.id)
    // A party that has released does not reuse its id
    yield* party.unsubscribe
    parties[who] = bench.party()
  })

  const requeue = Effect.fnUntraced(function*(who: number) {
    const party = parties[who]!
    const next = parties[who] = bench.party()
    yield* next.subscribe
    const { ownership, token } = yield* party.requeue(next)
    queuedAt.set(next, now)
    leave(party)
    if (model.owner === party) model.owner = undefined
    const isFree = model.owner === undefined
    const head = isFree ? headBefore(undefined) : undefined
    if (head !== undefined) yield* handOver(head)
    if (isFree && head === undefined) {
      assert.isDefined(token, "nobody is ahead")
      mint(token!)
      model.owner = next
      model.until = now + leaseMillis
    } else {
      assert.isUndefined(token)
      assert.isTrue(model.queue.every((other) => Number(other.ticket) < Number(next.ticket)), "behind all waiters")
      model.queue.push(next)
      keepPlaces()
    }
    assert.strictEqual(ownerOf(ownership), model.owner?.id)
    yield* party.unsubscribe
  })

  yield* pass(Duration.zero)
  for (const command of commands) {
    yield* tick(1)
    switch (command._tag) {
      case "Try":
        yield* ask(command.who, "try")
        break
      case "Wait":
        yield* ask(command.who, "wait")
        break
      case "Release":
        yield* release(command.who)
        break
      case "ReleaseOwner": {
        const who = parties.findIndex((party) => party === model.owner)
        if (who !== -1) yield* release(who)
        break
      }
      case "Requeue":
        yield* requeue(command.who)
        break
      case "Guard": {
        const party = parties[command.who]!
        const result = yield* party.guard
        if (model.owner === party) {
          assert.deepStrictEqual(result, { _tag: "Renewed" })
          model.until = now + leaseMillis
        } else if (result._tag === "Lost") assert.strictEqual(ownerOf(result.ownership), model.owner?.id)
        else assert.fail(`expected a loss: ${JSON.stringify(result)}`)
        break
      }
      case "Die":
        yield* parties[command.who]!.unsubscribe
        break
      case "Pass": {
        const limit = model.queue.length === 0 ? Infinity : keptUntil - allTicks - now
        yield* tick(Math.max(0, Math.min(command.millis, limit)))
      }
    }
    assert.strictEqual(ownerOf(yield* bench.owner), model.owner?.id)
  }
  // Check that the remaining waiters are served in order
  for (const party of parties) {
    if (party.subscribed) continue
    yield* party.release
    leave(party)
  }
  if (model.owner !== undefined && !model.owner.subscribed) {
    model.owner = undefined
    const head = headBefore(undefined)
    if (head !== undefined) yield* handOver(head)
  }
  const subscribed = model.queue.filter((party) => party.subscribed)
  for (const next of subscribed) {
    if (model.owner !== undefined) yield* model.owner.release
    const owner = ownerOf(yield* bench.owner)
    if (model.owner === undefined) {
      mint((yield* next.confirm).token)
      leave(next)
      model.owner = next
      continue
    }
    assert.strictEqual(owner, next.id, "waiters are served in order of arrival")
    model.owner = undefined
    yield* handOver(next)
    mint((yield* next.confirm).token)
  }
  if (model.owner !== undefined) yield* model.owner.release
  yield* pass(Duration.zero)
  assert.strictEqual((yield* bench.owner)._tag, "Free")
})
