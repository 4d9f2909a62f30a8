/** Checks all short sequences of a contender's events, and the documented diagram of its phases. */
import { assert, describe, it } from "@effect/vitest"
import * as plan from "../../src/internal/leadership/leadershipPlan.ts"
import { diagramOf } from "../support/diagram.ts"

/** The state of the plan's interpreter: the loop, its lease, and job runs. */
interface World {
  readonly contention: plan.Contention
  hasLoop: boolean
  isInterrupted: boolean
  hasLease: boolean
  /** The leadership of each job run. */
  readonly runs: Array<number>
  /** The leadership of each drain in progress. */
  readonly drains: Array<number>
  /** The leaderships whose work has failed. */
  readonly failed: Set<number>
  readonly problems: Array<string>
}

const begin = (): World => ({
  contention: plan.make(),
  hasLoop: false,
  isInterrupted: false,
  hasLease: false,
  runs: [],
  drains: [],
  failed: new Set(),
  problems: []
})

const copy = (world: World): World => ({
  ...world,
  contention: { ...world.contention },
  runs: [...world.runs],
  drains: [...world.drains],
  failed: new Set(world.failed),
  problems: [...world.problems]
})

const eventsOf = ({ contention, drains, hasLease, hasLoop, isInterrupted, runs }: World): ReadonlyArray<plan.Event> => {
  const { leadership } = contention
  const all: ReadonlyArray<readonly [plan.Event, boolean]> = [
    [{ _tag: "Start" }, true],
    [{ _tag: "Stop" }, true],
    [{ _tag: "StepDown" }, true],
    [{ _tag: "Leave" }, true],
    [{ _tag: "Close" }, true],
    [{ _tag: "LoopEnded" }, hasLoop && isInterrupted && !hasLease],
    [{ _tag: "Gained", now: 0 }, hasLoop && !hasLease && !isInterrupted],
    [{ _tag: "Over", now: 1000 }, hasLease],
    [{ _tag: "RunStarted" }, plan.mayStart(contention) && runs.length < 2],
    [{ _tag: "RunEnded", leadership: runs[0] ?? 0 }, runs.length > 0],
    [{ _tag: "WorkFailed", leadership, now: 1000 }, leadership > 0],
    [{ _tag: "WorkFailed", leadership: leadership - 1, now: 1000 }, leadership > 1],
    [{ _tag: "Drained", leadership: drains[0] ?? 0 }, drains.length > 0]
  ]
  return all.flatMap(([event, isPossible]) => isPossible ? [event] : [])
}

const happen = (world: World, event: plan.Event): plan.Command => {
  const { contention } = world
  const command = plan.next(contention, event)
  if (event._tag === "LoopEnded") world.hasLoop = world.isInterrupted = false
  if (event._tag === "Gained") world.hasLease = true
  if (event._tag === "Over") world.hasLease = false
  if (event._tag === "RunStarted") world.runs.push(contention.leadership)
  if (event._tag === "RunEnded") world.runs.shift()
  if (event._tag === "Drained") world.drains.shift()
  if (event._tag === "WorkFailed" && event.leadership === contention.leadership) world.failed.add(event.leadership)
  const expect = (condition: boolean, problem: string) => {
    if (!condition) world.problems.push(problem)
  }
  switch (command) {
    case "begin":
      expect(!world.hasLoop, "a second loop")
      world.hasLoop = true
      break
    case "interrupt":
      expect(world.hasLoop, "interrupts nothing")
      world.isInterrupted = true
      break
    case "drain":
      expect(world.hasLease && !world.drains.includes(contention.leadership), "drains twice")
      world.drains.push(contention.leadership)
      break
    case "endDrain":
      expect(world.drains.includes(contention.leadership), "ends no drain")
      expect(!world.runs.includes(contention.leadership), "ends a drain before its runs")
  }
  return command
}

interface Step {
  readonly event: plan.Event
  readonly command: plan.Command
}

/** Calls `see` with each sequence of up to `length` events, and with the state before and after the last event. */
const explore = (length: number, see: (steps: ReadonlyArray<Step>, before: World, after: World) => void) => {
  const go = (world: World, steps: ReadonlyArray<Step>) => {
    if (steps.length === length) return
    for (const event of eventsOf(world)) {
      const after = copy(world)
      const more = [...steps, { event, command: happen(after, event) }]
      see(more, world, after)
      go(after, more)
    }
  }
  go(begin(), [])
}

describe("a contender", () => {
  const length = 6

  const always = (holds: (after: World, step: Step, before: World) => boolean) =>
    explore(length, (steps, before, after) => {
      if (!holds(after, steps.at(-1)!, before)) assert.fail(JSON.stringify(steps))
    })

  it("has at most one loop, and interrupts only that loop", () =>
    always(({ contention, hasLease, hasLoop, problems }) =>
      problems.length === 0 && hasLoop === (contention.phase !== "stopped") &&
      hasLease === (contention.phase !== "stopped" && contention.phase !== "contending")
    ))

  it("stops contending only when nobody wants it to lead", () =>
    always(({ contention }) => contention.phase !== "stopped" || !contention.isWanted))

  it("does not start a loop while it is closed or stopped", () =>
    always(({ contention }, { command }) => command !== "begin" || (!contention.isClosed && contention.isWanted)))

  it("always ends its loop when asked to", () =>
    always(({ hasLoop, isInterrupted }, { event: { _tag } }) =>
      (_tag !== "Stop" && _tag !== "Close" && _tag !== "StepDown") || !hasLoop || isInterrupted
    ))

  it("keeps its lease when it is leaving, or gives up its place in the queue", () =>
    always(({ contention, isInterrupted }, { command, event: { _tag } }, before) =>
      _tag !== "Leave" ||
      (contention.isLeaving &&
        (before.hasLease ? command === "nothing" : !before.hasLoop || isInterrupted))
    ))

  it("on restart, rejoins the queue if it had left, and otherwise keeps its place", () =>
    always((_, { command, event: { _tag } }, before) =>
      _tag !== "Start" || !before.hasLoop || before.isInterrupted ||
      (command === "interrupt") === (before.contention.isLeaving && !before.hasLease)
    ))

  it("does not start a run after the work has failed", () =>
    always(({ contention, drains }) => !plan.mayStart(contention) || !drains.includes(contention.leadership)))

  it("counts only runs of its current leadership", () =>
    always(({ contention, hasLease, runs }) =>
      !hasLease || contention.runs === runs.filter((leadership) => leadership === contention.leadership).length
    ))

  it("ends a leadership with failed work when its job runs have ended, and does not end any others", () =>
    always(({ isInterrupted }, { command, event }, before) =>
      event._tag !== "Drained" ||
      (before.contention.phase === "resigning" && event.leadership === before.contention.leadership
        ? command === "interrupt" && isInterrupted
        : command === "nothing")
    ))

  it("pauses once for each leadership whose work has failed, however it ended", () =>
    always(({ contention, failed, hasLease }) => {
      const over = [...failed].filter((leadership) => !hasLease || leadership !== contention.leadership)
      return contention.failures === over.length &&
        contention.contendsAt === (over.length === 0 ? 0 : 1000 + 100 * 2 ** (over.length - 1))
    }))

  it("rejoins the queue after its pause if its work fails after the end of its leadership", () =>
    always(({ isInterrupted }, { event }, before) =>
      event._tag !== "WorkFailed" || event.leadership !== before.contention.leadership || before.hasLease ||
      !before.hasLoop || isInterrupted || before.failed.has(event.leadership)
    ))

  it("pauses longer after each failure, up to a limit, until a long leadership resets the pause", () => {
    const contention = plan.make()
    const fail = (lastedMillis: number) => {
      plan.next(contention, { _tag: "Gained", now: 5000 })
      const { leadership } = contention
      const now = 5000 + lastedMillis
      assert.strictEqual(plan.next(contention, { _tag: "WorkFailed", leadership, now }), "drain")
      assert.strictEqual(plan.next(contention, { _tag: "Drained", leadership }), "interrupt")
      plan.next(contention, { _tag: "Over", now })
      assert.strictEqual(plan.next(contention, { _tag: "LoopEnded" }), "begin")
      return contention.contendsAt - now
    }
    assert.strictEqual(plan.next(contention, { _tag: "Start" }), "begin")
    assert.strictEqual(contention.contendsAt, 0)
    const pauses = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(() => fail(59_999))
    assert.deepStrictEqual(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
    // A failure after a long leadership starts a new series of failures
    assert.strictEqual(fail(60_000), 100)
    assert.deepStrictEqual([fail(1000), fail(1000), fail(70_000), fail(59_999)], [200, 400, 100, 200])
    // A leadership that does not end in a failure
    plan.next(contention, { _tag: "Gained", now: 5000 })
    plan.next(contention, { _tag: "Over", now: 65_000 })
    assert.strictEqual(fail(1000), 100)
  })

  it("refuses events that cannot occur in its phase", () => {
    for (const _tag of ["LoopEnded", "Gained", "RunStarted", "Over"] as const) {
      assert.throws(() => plan.next(plan.make(), { _tag, now: 0 }), `event ${_tag} is impossible`)
    }
  })

  it("has the documented phases and steps", () => {
    const arrows = new Set<string>()
    explore(6, (steps, before, after) => {
      const [from, to] = [before.contention.phase, after.contention.phase]
      if (from !== to) arrows.add(`${from} --> ${to}: ${steps.at(-1)!.event._tag}`)
    })
    assert.deepStrictEqual(diagramOf("stopped"), ["[*] --> stopped", ...arrows].sort())
  })
})
