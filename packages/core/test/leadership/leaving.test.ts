/** Leaving nodes are skipped by releases, and lead only if nobody else wants to. */
import { Mutex } from "@effect-simba/core"
import { assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import * as Fleet from "../support/fleet.ts"
import { TestLive } from "../support/setup.ts"

const join = Effect.fnUntraced(function*(fleet: Fleet.Fleet, name: string) {
  const node = yield* fleet.node(name)
  const contender = yield* node.here(Mutex.contend("jobs"))
  yield* TestClock.adjust("10 millis")
  return { ...node, contender }
})

const leader = (nodes: ReadonlyArray<Effect.Success<ReturnType<typeof join>>>) =>
  Effect.map(
    Effect.filter(nodes, ({ contender }) => Effect.map(contender.lease, Option.isSome)),
    (leading) => leading.map(({ name }) => name).join(",")
  )

it.effect("the leadership moves only once in a rolling update of five nodes if the old nodes are marked as leaving", () =>
  Effect.gen(function*() {
    for (const [marks, moves] of [[true, ["new 1"]], [false, ["old 2", "old 3", "old 4", "old 5", "new 1"]]] as const) {
      const fleet = yield* Fleet.make
      const old = yield* Effect.forEach([1, 2, 3, 4, 5], (i) => join(fleet, `old ${i}`))
      if (marks) yield* Effect.forEach(old, ({ contender }) => contender.leave)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* leader(old), "old 1", "the leader continues")
      const nodes = [...old]
      const leaders: Array<string> = ["old 1"]
      for (const [i, one] of old.entries()) {
        nodes.push(yield* join(fleet, `new ${i + 1}`))
        yield* one.close
        yield* TestClock.adjust("1 second")
        const now = yield* leader(nodes)
        if (now !== leaders.at(-1)) leaders.push(now)
      }
      assert.deepStrictEqual(leaders.slice(1), [...moves])
      yield* Effect.forEach(nodes, ({ close }) => close)
    }
  }))

it.effect("if all nodes are leaving, one of them leads within the poll interval, and a restarted node queues immediately", () =>
  Effect.gen(function*() {
    const fleet = yield* Fleet.make
    const nodes = yield* Effect.forEach(["a", "b", "c"], (name) => join(fleet, name))
    yield* Effect.forEach(nodes, ({ contender }) => contender.leave)
    yield* nodes[0]!.close
    yield* TestClock.adjust("1100 millis")
    const second = yield* leader(nodes)
    assert.include(["b", "c"], second)
    const [leading, other] = second === "b" ? [nodes[1]!, nodes[2]!] : [nodes[2]!, nodes[1]!]
    yield* other.contender.start
    yield* TestClock.adjust("10 millis")
    yield* leading.contender.stepDown
    yield* TestClock.adjust("10 millis")
    assert.strictEqual(yield* leader(nodes), other.name)
  }))

it.effect("work does not wait for itself when it calls leave in a finalizer after a loss", () =>
  Effect.gen(function*() {
    const contender = yield* Mutex.contend("jobs")
    let leaderships = 0
    // By then, the first leadership has ended
    const leaving = Effect.suspend(() =>
      leaderships === 1 ? Effect.andThen(Effect.sleep("1 second"), contender.leave) : Effect.void
    )
    const work = Effect.andThen(Effect.sync(() => leaderships++), Effect.onInterrupt(Effect.never, () => leaving))
    yield* Effect.forkChild(contender.whileLeader(work), { startImmediately: true })
    yield* TestClock.adjust("10 millis")
    yield* Mutex.forceRelease("jobs")
    yield* TestClock.adjust("20 seconds")
    assert.isTrue(Option.isSome(yield* contender.lease))
    assert.strictEqual(leaderships, 2)
  }).pipe(Effect.provide(TestLive)))
