/** Tests the states of an owned data stream and compares them with the diagram in docs/protocol.md. */
import { StreamName } from "@effect-simba/core/streams"
import * as StreamStore from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { LeaseImpl } from "../../src/streams/internal/leaseHandle.ts"
import { OwnedStream } from "../../src/streams/internal/ownedStream.ts"
import { after, type OwnedState, transitions } from "../../src/streams/internal/ownedStreamStates.ts"
import { Pauses } from "../../src/streams/internal/pauses.ts"
import { acquisitionAt } from "../support/acquisition.ts"

const text = readFileSync(join(import.meta.dirname, "../../../../docs/protocol.md"), "utf8")

/** The diagram's arrows, which have the form `from ── by ──▶ to`. */
const arrows = text.split("#### The states of an entry")[1]!.split("```")[3]!.split("\n").flatMap((line) => {
  const [, from, by, to] = /^(.+) ── (.+) ──▶ (.+)$/.exec(line) ?? []
  return from === undefined ? [] : from.split(", ").map((one) => `${one} ${by} ${to}`)
})

const names = Object.keys(transitions) as ReadonlyArray<keyof typeof transitions>

describe("an owned data stream's states", () => {
  it("match the diagram in docs/protocol.md", () => {
    const found = names.flatMap((name) =>
      Object.entries(transitions[name]).map(([from, to]) => `${from} ${name} ${to}`)
    )
    assert.deepStrictEqual(found.sort(), [...arrows].sort())
  })

  it("include two final states", () => {
    for (const state of ["ended", "lost"] satisfies ReadonlyArray<OwnedState>) {
      for (const name of names) assert.isUndefined(after(state, name))
    }
  })
})

describe("an owned data stream", () => {
  const member = {
    consumer: StreamStore.ConsumerName.make("simba-consumer-b"),
    session: "session00001",
    capacity: 1,
    owned: 0
  }
  const owned = () =>
    new OwnedStream(acquisitionAt({ monotonic: 0, wall: 0 }, { stream: "orders:eu" }), {
      usable: 1000,
      margin: 100,
      renewAfter: 500,
      isGroupable: false,
      early: 250,
      maxHold: Infinity,
      progressTimeout: Infinity
    })
  const stateOf = (one: OwnedStream) => ({
    isRevoked: one.isRevoked,
    isStopped: one.isStopped,
    isFor: one.receiver?.consumer,
    isOpen: one.isOpen()
  })

  it("can be revoked again after a revocation was withdrawn", () => {
    const one = owned()
    for (let i = 0; i < 2; i++) {
      one.recall(member)
      assert.deepStrictEqual(stateOf(one), { isRevoked: true, isStopped: false, isFor: member.consumer, isOpen: true })
      one.keep()
      assert.deepStrictEqual(stateOf(one), { isRevoked: false, isStopped: false, isFor: undefined, isOpen: true })
    }
  })

  it("stays stopped without a receiver if its revocation is withdrawn", () => {
    const one = owned()
    one.recall(member)
    one.stop()
    one.keep()
    assert.deepStrictEqual(stateOf(one), { isRevoked: true, isStopped: true, isFor: undefined, isOpen: true })
  })

  it("still reports its revocation after its end, because an uninterruptible handler may be waiting for it", () => {
    for (const end of [(one: OwnedStream) => one.lose("Expired"), (one: OwnedStream) => one.end("done")]) {
      for (const isRevoked of [false, true]) {
        const one = owned()
        if (isRevoked) one.revoke()
        end(one)
        assert.deepStrictEqual(stateOf(one), { isRevoked, isStopped: false, isFor: undefined, isOpen: false })
      }
    }
  })

  it("reports a change in its handler's state with each renewal until one succeeds", () => {
    const one = owned()
    const sent = () => {
      const { hasProgressed, isBusy } = one.renewal()
      return [isBusy, hasProgressed]
    }
    const succeed = () => one.renewedBy(one.renewal())
    // The backend assumes that the handler is busy when a stream is taken
    assert.deepStrictEqual(sent(), [undefined, false])
    one.waiting++
    assert.deepStrictEqual([sent(), sent()], [[false, false], [false, false]])
    succeed()
    one.failures = 2
    succeed()
    // The failure count does not change without progress
    assert.deepStrictEqual([sent(), one.failures], [[undefined, false], 2])
    one.inHand++
    assert.deepStrictEqual(sent(), [true, false])
    one.inHand--
    // The renewal that reported a busy handler got no reply
    assert.deepStrictEqual(sent(), [false, false])
    succeed()
    one.waiting--
    one.hasProgressed = true
    one.failures = 3
    assert.deepStrictEqual(sent(), [true, true])
    succeed()
    assert.deepStrictEqual([sent(), one.failures], [[undefined, false], 0])
  })

  it("may have been ended by a request that got no reply, until a later renewal succeeds", () => {
    const one = owned()
    assert.isFalse(one.isEnding)
    one.attempted = { how: "done", at: 100 }
    assert.isTrue(one.isEnding)
    for (const [sent, isEnding] of [[99, true], [100, true], [101, false]] as const) {
      one.group.extend({ monotonic: sent, wall: sent })
      assert.strictEqual(one.isEnding, isEnding)
    }
    one.endings++
    assert.isTrue(one.isEnding)
  })

  it("ends after progressTimeout if its handler is busy but makes no progress, and otherwise at its deadline", () => {
    const one = owned()
    Object.assign(one.options, { progressTimeout: 300 })
    assert.deepStrictEqual([one.stallsAt(), one.endsAt()], [Infinity, 1000])
    one.progressedAt = 50
    assert.deepStrictEqual([one.stallsAt(), one.endsAt()], [350, 350])
    one.waiting++
    assert.deepStrictEqual([one.stallsAt(), one.endsAt()], [Infinity, 1000])
    one.inHand++
    assert.strictEqual(one.stallsAt(), 350)
    one.progressedAt = 900
    assert.strictEqual(one.endsAt(), 1000)
  })

  it("interrupts its handler when it is stopped, also its protected work when it is lost, and nothing when it ends", () => {
    for (const [how, expected] of [["stop", ["handler"]], ["lose", ["handler", "work"]], ["end", []]] as const) {
      const one = owned()
      const interrupted: Array<string> = []
      const fiber = (name: string) =>
        ({ interruptUnsafe: () => interrupted.push(name), pollUnsafe: () => undefined }) as never
      one.handler = fiber("handler")
      one.work.start()
      one.work.add(fiber("work"), false)
      const notices: Array<string> = []
      one.onRevoked.add(() => notices.push("revoked"))
      one.onEnd.add(() => notices.push("ended"))
      one.onLoss.add(() => notices.push("lost"))
      one.revoke()
      one.revoke()
      if (how === "stop") {
        one.stop()
        one.stop()
      } else if (how === "end") one.end("released")
      else {
        one.lose("Vanished")
        one.notifyLoss()
      }
      assert.deepStrictEqual(interrupted, [...expected])
      assert.deepStrictEqual(
        notices,
        {
          stop: ["revoked"],
          lose: ["revoked", "lost", "ended"],
          end: ["revoked", "ended"]
        }[how]
      )
      assert.strictEqual(one.over.reason._tag, how === "lose" ? "Vanished" : "Released")
    }
  })

  it("counts as revoked if it is stopped without an earlier revocation", () => {
    const one = owned()
    let notices = 0
    one.onRevoked.add(() => notices++)
    one.stop()
    assert.deepStrictEqual([stateOf(one).isRevoked, notices], [true, 1])
  })

  it("forgets a withdrawn revocation if its handler never asked about it", () => {
    const one = owned()
    one.recall(member)
    one.keep()
    assert.isFalse(one.isKept)
  })

  it("remembers when it was handed over by another member", () => {
    const arrival = { membership: "two", at: 7 }
    const { options } = owned()
    const one = new OwnedStream({ ...acquisitionAt({ monotonic: 0, wall: 0 }), arrival }, options)
    assert.strictEqual(one.arrival, arrival)
    assert.isUndefined(owned().arrival)
  })

  it("remembers a withdrawn revocation only if its handler was notified of that revocation", () => {
    for (const hasHeard of [false, true]) {
      const one = owned()
      one.recall(member)
      one.hasHeard = hasHeard
      one.keep()
      assert.deepStrictEqual([one.isKept, one.hasHeard, one.isRevoked], [hasHeard, false, false])
    }
  })
})

it.effect("a handler counts as notified of a revocation once it has read isRevoked or waited for revoked", () =>
  Effect.gen(function*() {
    for (const isRevoked of [false, true]) {
      const owned = { isRevoked, hasHeard: false, isKept: false, revoked: Effect.void }
      const lease = new LeaseImpl({} as never, owned as never)
      assert.strictEqual(yield* lease.isRevoked, isRevoked)
      assert.strictEqual(owned.hasHeard, isRevoked)
      owned.hasHeard = false
      yield* lease.revoked
      assert.deepStrictEqual([owned.hasHeard, owned.isKept], [isRevoked, !isRevoked])
    }
  }))

it.effect("a lease reports progress to the backend only after a failure", () =>
  Effect.gen(function*() {
    for (const failures of [0, 1]) {
      const owned = { failures, hasProgressed: false, progressedAt: undefined }
      yield* new LeaseImpl({} as never, owned as never).progress
      assert.strictEqual(owned.hasProgressed, failures > 0)
    }
  }))

it("a pause affects the whole service or named data streams, and `set` returns whether anything changed", () => {
  const pauses = new Pauses()
  const [a, b] = ["a", "b"].map((name) => StreamName.StreamName.make(name)) as [
    StreamName.StreamName,
    StreamName.StreamName
  ]
  assert.deepStrictEqual([pauses.isService, pauses.has(a)], [false, false])
  const set = (service: boolean, ...streams: ReadonlyArray<StreamName.StreamName>) => [
    pauses.set({ service, streams }),
    pauses.isService,
    pauses.has(a),
    pauses.has(b)
  ]
  assert.deepStrictEqual(set(false), [false, false, false, false])
  assert.deepStrictEqual(set(false, a), [true, false, true, false])
  assert.deepStrictEqual(set(false, a), [false, false, true, false])
  assert.deepStrictEqual(set(false, b), [true, false, false, true])
  assert.deepStrictEqual(set(false, b, a), [true, false, true, true])
  assert.deepStrictEqual(set(false, a, b), [false, false, true, true])
  assert.deepStrictEqual(set(true, a, b), [true, true, true, true])
  assert.deepStrictEqual(set(true), [true, true, true, true])
})
