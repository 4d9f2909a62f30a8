/** Checks all sequences of requests, replies, failures and arrivals in one line of fibers. */
import { BackendError } from "@effect-simba/core/SimbaError"
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import * as silencePlan from "../../src/internal/mutex/silencePlan.ts"

const outage = new BackendError({ operation: "acquire", isRetryable: true, cause: new Error("down") })

const timeout = Duration.seconds(20)
const confirm = Duration.millis(10)
const leaseMillis = 1000

type Event = "asked" | "replied" | "failed" | "joined"

/** Records the events independently of the plan. They are a millisecond apart. */
interface World {
  readonly silence: silencePlan.Silence
  now: number
  /** The time of the first request or failure since the last reply. */
  silentSince: number | undefined
  hasReplied: boolean
  hasFailed: boolean
  waiters: number
}

const begin = (): World => ({
  silence: silencePlan.make(),
  now: 0,
  silentSince: undefined,
  hasReplied: false,
  hasFailed: false,
  waiters: 0
})

const happen = (world: World, event: Event): void => {
  const { silence } = world
  const now = ++world.now
  switch (event) {
    case "asked":
      silencePlan.asked(silence, now, world.waiters > 0)
      world.silentSince ??= now
      return
    case "replied":
      silencePlan.replied(silence)
      world.silentSince = undefined
      world.hasReplied = true
      world.hasFailed = false
      return
    case "failed":
      world.silentSince ??= now
      assert.strictEqual(silencePlan.failed(silence, now, outage), world.silentSince)
      silencePlan.waits(silence, world.waiters === 0 ? Infinity : world.silentSince + leaseMillis)
      world.hasFailed = true
      return
    case "joined":
      silencePlan.joined(silence, now, leaseMillis, world.waiters === 0)
      world.waiters++
  }
}

const explore = (length: number, see: (events: ReadonlyArray<Event>, world: World) => void) => {
  const go = (world: World, events: ReadonlyArray<Event>) => {
    if (events.length === length) return
    for (const event of ["asked", "replied", "failed", "joined"] as const) {
      const after = { ...world, silence: { ...world.silence } }
      happen(after, event)
      const more = [...events, event]
      see(more, after)
      go(after, more)
    }
  }
  go(begin(), [])
}

describe("a backend's silence", () => {
  const always = (holds: (world: World) => boolean) =>
    explore(6, (events, world) => {
      if (!holds(world)) assert.fail(events.join(", "))
    })

  const problemAfter = ({ now, silence }: World, millis: number) =>
    silencePlan.problemOf(silence, timeout, confirm, now + millis)

  it("starts with the first request without a reply", () =>
    always(({ silence, silentSince }) =>
      silence.since === (silentSince ?? Infinity) &&
      (silence.phase === "untried" || silence.phase === "replied") === (silentSince === undefined)
    ))

  it("is not a problem if the last request got a reply", () =>
    always((world) => world.silentSince !== undefined || problemAfter(world, 60_000) === undefined))

  it("reports the last failed request's error as the cause", () =>
    always((world) => !world.hasFailed || problemAfter(world, 0) === outage))

  it("is a problem immediately if no request has ever got a reply, otherwise after a confirm period", () =>
    always((world) => {
      if (world.silentSince === undefined || world.hasFailed) return true
      const quick = problemAfter(world, 0)
      const late = problemAfter(world, Duration.toMillis(confirm))
      return late?._tag === "BackendError" && (quick === undefined) === world.hasReplied
    }))

  it("makes a waiter give up after exactly the duration of its lease", () =>
    always(({ silence: { giveUpAt }, silentSince, waiters }) =>
      waiters === 0 || silentSince === undefined
        ? giveUpAt === Infinity
        : giveUpAt >= silentSince + leaseMillis && giveUpAt <= silentSince + leaseMillis + 6
    ))

  it("makes the current waiter with the shortest lease give up first", () => {
    const giveUpAt = (leases: ReadonlyArray<number>) => {
      const silence = silencePlan.make()
      leases.forEach((lease, index) => silencePlan.joined(silence, 0, lease, index === 0))
      silencePlan.asked(silence, 100, true)
      return silence
    }
    assert.strictEqual(giveUpAt([1000]).giveUpAt, 1100)
    assert.strictEqual(giveUpAt([3000, 1000, 2000]).giveUpAt, 1100)
    assert.strictEqual(giveUpAt([1000, 2000]).giveUpAt, 1100)
    // The line was empty before this waiter arrived
    const silence = giveUpAt([1000])
    silencePlan.replied(silence)
    silencePlan.joined(silence, 200, 5000, true)
    silencePlan.asked(silence, 300, true)
    assert.strictEqual(silence.giveUpAt, 5300)
    assert.include(String(silencePlan.rang(silence)!.cause), "no reply within 5s")
    // Nobody waits
    silencePlan.replied(silence)
    silencePlan.asked(silence, 6000, false)
    assert.strictEqual(silence.giveUpAt, Infinity)
  })

  it("is reported in whole milliseconds, although clocks have fractions of them", () => {
    const silence = silencePlan.make()
    silencePlan.asked(silence, 0.25, true)
    silencePlan.waits(silence, 1500.5)
    assert.strictEqual(String(silencePlan.rang(silence)!.cause), "Error: no reply within 1s 500ms")
  })

  it("fires only once, and only if there is no reply", () =>
    explore(5, (events, { silence, silentSince }) => {
      const before = silence.giveUpAt
      const outage = silencePlan.rang(silence)
      assert.strictEqual(outage === undefined, silentSince === undefined, events.join(", "))
      assert.strictEqual(silence.giveUpAt, Infinity)
      if (outage !== undefined && Number.isFinite(before)) assert.isTrue(outage.isRetryable)
    }))
})
