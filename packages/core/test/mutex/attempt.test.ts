/** A single request to acquire a mutex: its time limit, its cancellation, and replies that come too late. */
import { FencingToken } from "@effect-simba/core/FencingToken"
import { type LeaseId, MutexName } from "@effect-simba/core/MutexName"
import type { AcquireResult, MutexStore } from "@effect-simba/core/MutexStore"
import type { StoreError } from "@effect-simba/core/SimbaError"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Exit } from "effect"
import { type AttemptContext, type Refused, Request } from "../../src/internal/mutex/attempt.ts"
import type { HeldLease } from "../../src/internal/mutex/heldLease.ts"
import type { LeaseSettings } from "../../src/internal/mutex/leaseOptions.ts"

type Done = Parameters<MutexStore["Service"]["acquire"]>[1]

/** A request for a lease of ten seconds, with a clock, timers and a store that the test controls. */
const stage = () => {
  const state = { now: 0, abandoned: 0, isClosed: false }
  const timers = new Map<() => void, number>()
  const asked: Array<Done> = []
  const replies: Array<Exit.Exit<HeldLease | Refused, StoreError>> = []
  const at = (when: number, ring: () => void) => {
    if (state.isClosed) ring()
    else timers.set(ring, when)
    return () => void timers.delete(ring)
  }
  const nothing = () => undefined
  const forked: Array<Effect.Effect<unknown>> = []
  const context = {
    store: {
      acquire: (_request: unknown, done: Done) => {
        asked.push(done)
        return () => void state.abandoned++
      }
    },
    confirmTimeout: Duration.seconds(1),
    now: () => ({ monotonic: state.now, wall: state.now }),
    recorder: { update: nothing },
    fork: (effect: Effect.Effect<unknown>) => forked.push(effect),
    timers: { at, pollAt: at, isClosed: () => state.isClosed }
  } as unknown as AttemptContext
  const settings = { lease: Duration.seconds(10), leaseMillis: 10_000, margin: 500 } as LeaseSettings
  const attempt = { mutex: MutexName.make("m"), id: "1-aaaaaaaaaaaa:us" as LeaseId, settings }
  const request = new Request(context, attempt, { mode: "try" }, (exit) => replies.push(exit))
  /** Rings the timers. Then reads the sockets, and continues what waited for that. */
  const ring = (read = nothing as () => void) => {
    for (const timer of [...timers.keys()]) timer()
    read()
    for (const effect of forked.splice(0)) Effect.runSync(effect)
  }
  const messages = () => replies.map((exit) => Exit.isFailure(exit) ? String(Exit.getCause(exit)) : "granted")
  return { asked, messages, replies, request, ring, state, timers }
}

const granted = Exit.succeed<AcquireResult>({ _tag: "Granted", token: FencingToken.make(8) })

it("without a reply, it fails as in an outage, is abandoned, and ignores a late reply", () => {
  const { asked, messages, request, ring, state, timers } = stage()
  request.start(10_000)
  assert.deepStrictEqual([...timers.values()], [10_000])
  ring()
  asked[0]!(granted)
  assert.strictEqual(messages().length, 1)
  assert.include(messages()[0], "no reply within 10s")
  assert.deepStrictEqual([state.abandoned, timers.size], [1, 0])
})

it("a reply that is read just after the timer has rung counts", () => {
  const { asked, messages, request, ring, state, timers } = stage()
  request.start(10_000)
  ring(() => asked[0]!(granted))
  assert.deepStrictEqual([messages(), state.abandoned, timers.size], [["granted"], 0, 0])
})

it("a cancelled request is abandoned and ignores its reply", () => {
  const { asked, messages, request, state, timers } = stage()
  request.start(10_000)
  request.cancel()
  asked[0]!(granted)
  assert.deepStrictEqual([messages(), state.abandoned, timers.size], [[], 1, 0])
})

it("when the layer closes, it fails immediately, and later requests are not sent", () => {
  const during = stage()
  during.request.start(10_000)
  during.state.isClosed = true
  during.ring()
  const after = stage()
  after.state.isClosed = true
  after.request.start(10_000)
  assert.deepStrictEqual([during.asked.length, after.asked.length], [1, 0])
  for (const { messages } of [during, after]) {
    assert.strictEqual(messages().length, 1)
    assert.include(messages()[0], "closed")
  }
})

it("a grant of which too little is left is requested again", () => {
  const { asked, messages, request, state, timers } = stage()
  request.start(20_000)
  state.now = 9500
  asked[0]!(granted)
  assert.deepStrictEqual([messages(), asked.length, timers.size], [[], 2, 1])
  state.now = 18_999
  asked[1]!(granted)
  assert.deepStrictEqual([messages(), timers.size], [["granted"], 0])
})
