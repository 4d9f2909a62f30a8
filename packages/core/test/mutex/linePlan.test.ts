/** Checks all short sequences of a line's events, and the documented diagram of its phases. */
import { assert, describe, it } from "@effect/vitest"
import * as linePlan from "../../src/internal/mutex/linePlan.ts"
import { diagramOf } from "../support/diagram.ts"

/** The state of the plan's interpreter: fibers, the place, and the lease. */
interface World {
  readonly line: linePlan.Line
  readonly asking: Array<linePlan.LineFiber>
  readonly waiting: Array<linePlan.LineFiber>
  isHeld: boolean
  /** A place ends with a grant or a defect, or when it is abandoned. */
  place: "none" | "listening" | "contending"
  readonly problems: Array<string>
}

const begin = (): World => ({
  line: linePlan.make(),
  asking: [],
  waiting: [],
  isHeld: false,
  place: "none",
  problems: []
})

const copies = (fibers: ReadonlyArray<linePlan.LineFiber>) => fibers.map((fiber) => ({ ...fiber }))

const copy = (world: World): World => ({
  ...world,
  line: { ...world.line },
  asking: copies(world.asking),
  waiting: copies(world.waiting),
  problems: [...world.problems]
})

/** At most three fibers want the mutex. */
const eventsOf = ({ asking, isHeld, place, waiting }: World): ReadonlyArray<linePlan.Event> => {
  const hasRoom = asking.length + waiting.length + (isHeld ? 1 : 0) < 3
  const all: ReadonlyArray<readonly [linePlan.Event, boolean]> = [
    ["Asked", hasRoom && !isHeld && waiting.length === 0],
    ["Granted", asking.length > 0],
    ["Refused", asking.length > 0],
    ["JoinedFirst", asking.length > 0],
    ["Joined", hasRoom],
    ["Left", waiting.length > 0],
    ["Won", place === "contending" && waiting.length > 0],
    ["HandedOn", isHeld && waiting.length > 0],
    ["Released", isHeld],
    ["Lost", isHeld],
    ["Crashed", place !== "none"]
  ]
  return all.flatMap(([event, isPossible]) => isPossible ? [event] : [])
}

const fresh = (): linePlan.LineFiber => ({ phase: "new" })

/** The fiber to which an event belongs. */
const subjectOf = ({ asking, waiting }: World, event: linePlan.FiberEvent): linePlan.LineFiber => {
  if (event === "Asked" || event === "Joined") return fresh()
  const fibers = event === "Granted" || event === "Refused" || event === "JoinedFirst" ? asking : waiting
  return fibers[0] ?? fresh()
}

const commandOf = (world: World, event: linePlan.Event): linePlan.Command => {
  if (event === "Released" || event === "Lost") return linePlan.ended(world.line, event)
  if (event === "Crashed") return linePlan.crashed(world.line, world.waiting.shift())
  const fiber = subjectOf(world, event)
  const command = linePlan.next(world.line, event, fiber)
  if (event === "Granted" || event === "Refused" || event === "JoinedFirst") world.asking.shift()
  if (event === "Left" || event === "Won" || event === "HandedOn") world.waiting.shift()
  if (fiber.phase === "asking") world.asking.push(fiber)
  if (event === "JoinedFirst") world.waiting.unshift(fiber)
  if (event === "Joined") world.waiting.push(fiber)
  return command
}

const happen = (world: World, event: linePlan.Event): void => {
  const command = commandOf(world, event)
  if (event === "Granted" || event === "Won" || event === "HandedOn") world.isHeld = true
  if (event === "Released" || event === "Lost") world.isHeld = false
  if (event === "Won" || event === "Crashed") world.place = "none"
  const expect = (condition: boolean, problem: string) => {
    if (!condition) world.problems.push(problem)
  }
  switch (command) {
    case "listen":
      expect(world.place === "none", "a second place")
      world.place = "listening"
      return
    case "contend":
      expect(world.place !== "contending", "contends twice")
      world.place = "contending"
      return
    case "requeue":
      expect(event === "Released" && world.place === "listening", "queues a place that is not subscribed")
      world.place = "contending"
      return
    case "abandon":
      expect(world.place !== "none", "abandons nothing")
      world.place = "none"
  }
}

/** Calls `see` with each sequence of up to `length` events, and with the state before and after the last event. */
const explore = (length: number, see: (events: ReadonlyArray<linePlan.Event>, before: World, after: World) => void) => {
  const go = (world: World, events: ReadonlyArray<linePlan.Event>) => {
    if (events.length === length) return
    for (const event of eventsOf(world)) {
      const after = copy(world)
      happen(after, event)
      const more = [...events, event]
      see(more, world, after)
      go(after, more)
    }
  }
  go(begin(), [])
}

describe("the line of fibers that want one mutex", () => {
  const length = 7

  /** Asserts a property after each event in each sequence. */
  const always = (holds: (after: World, event: linePlan.Event, before: World) => boolean) =>
    explore(length, (events, before, after) => {
      if (!holds(after, events.at(-1)!, before)) assert.fail(events.join(", "))
    })

  it("counts its fibers, and has at most one place, which ends only once", () =>
    always(({ asking, isHeld, line, place, problems, waiting }) =>
      problems.length === 0 && line.asking === asking.length && line.waiting === waiting.length &&
      line.place === place &&
      linePlan.isHeld(line) === isHeld
    ))

  it("H1, H4: if the mutex is neither held nor requested, the first waiter's place contends", () =>
    always(({ asking, isHeld, line, place, waiting }) =>
      isHeld || asking.length > 0 || waiting.length === 0 || (place === "contending" && line.phase === "contending")
    ))

  it("H4: if others wait for a holder, their place is subscribed before the release is sent", () =>
    always(({ isHeld, place, waiting }) => !isHeld || waiting.length === 0 || place !== "none"))

  it("H2: a release queues the subscribed place", () =>
    always(({ place }, event, before) =>
      event !== "Released" || before.waiting.length === 0 || before.place !== "listening" || place === "contending"
    ))

  it("H7: nothing is left in the fleet's queue when nobody waits", () =>
    always(({ isHeld, place, waiting }) => waiting.length > 0 || isHeld || place === "none"))

  it("is idle if and only if no fiber wants the mutex", () =>
    always(({ asking, isHeld, line, waiting }) =>
      (line.phase === "idle") === (asking.length === 0 && waiting.length === 0 && !isHeld)
    ))

  it("refuses events that cannot occur in its phase", () => {
    const wrong: Array<string> = []
    explore(5, (_events, _before, after) => {
      const all: ReadonlyArray<linePlan.Event> = [
        "Granted",
        "Refused",
        "Left",
        "Won",
        "HandedOn",
        "Released",
        "Crashed"
      ]
      for (const event of all) {
        if (eventsOf(after).includes(event)) continue
        try {
          commandOf(copy(after), event)
          wrong.push(`${after.line.phase}: ${event}`)
        } catch {}
      }
    })
    assert.deepStrictEqual([...new Set(wrong)], [])
  })

  it("refuses events that cannot occur in a fiber's phase", () => {
    const fiber = (phase: linePlan.FiberPhase) => ({ phase })
    const idle = linePlan.make()
    const refused = (line: linePlan.Line, event: linePlan.FiberEvent, phase: linePlan.FiberPhase) =>
      assert.throws(() => linePlan.next({ ...line }, event, fiber(phase)), `event ${event} is impossible`)
    for (const event of ["Granted", "Refused", "JoinedFirst"] as const) refused(idle, event, "asking")
    refused(idle, "Left", "waiting")
    refused({ ...idle, phase: "contending", place: "contending" }, "Won", "waiting")
    refused({ ...idle, phase: "holding" }, "Asked", "new")
    refused({ ...idle, phase: "contending", waiting: 1, place: "contending" }, "Asked", "new")
  })

  it("fails only the first waiter in a place that crashed", () => {
    const line = linePlan.make()
    const [first, second] = [fresh(), fresh()]
    linePlan.next(line, "Joined", first)
    linePlan.next(line, "Joined", second)
    assert.strictEqual(linePlan.crashed(line, first), "contend")
    assert.deepStrictEqual([first.phase, second.phase, line.waiting], ["gone", "waiting", 1])
  })

  it("H7: an acquire that fails in any phase undoes its effects", () => {
    const undone = new Map<linePlan.FiberPhase, string>()
    explore(5, (_events, before, after) => {
      for (const fiber of [...before.asking, ...before.waiting, ...after.asking, ...after.waiting]) {
        undone.set(fiber.phase, linePlan.undoOf(fiber))
      }
    })
    assert.deepStrictEqual(undone, new Map([["asking", "undo"], ["waiting", "leave"]] as const))
    assert.strictEqual(linePlan.undoOf({ phase: "granted" }), "release")
    assert.strictEqual(linePlan.undoOf({ phase: "new" }), "nothing")
    assert.strictEqual(linePlan.undoOf({ phase: "gone" }), "nothing")
  })

  it("serves, refuses or releases each fiber once, in the documented steps", () => {
    const events: ReadonlyArray<linePlan.FiberEvent> = [
      "Asked",
      "Granted",
      "Refused",
      "JoinedFirst",
      "Joined",
      "Left",
      "Won",
      "HandedOn"
    ]
    const phases: ReadonlyArray<linePlan.FiberPhase> = ["new", "asking", "waiting", "granted", "gone"]
    const lines = new Map<string, linePlan.Line>()
    explore(5, (_events, _before, { line }) => lines.set(JSON.stringify(line), line))
    const steps = new Map<string, Set<string>>()
    for (const line of lines.values()) {
      for (const event of events) {
        for (const phase of phases) {
          const fiber: linePlan.LineFiber = { phase }
          try {
            linePlan.next({ ...line }, event, fiber)
          } catch {
            assert.strictEqual(fiber.phase, phase)
            continue
          }
          const step = `${phase} --> ${fiber.phase}`
          steps.set(step, (steps.get(step) ?? new Set()).add(event))
        }
      }
    }
    const arrows = [...steps].map(([step, events]) => `${step}: ${[...events].sort().join(", ")}`)
    assert.deepStrictEqual(diagramOf("new"), ["[*] --> new", ...arrows].sort())
  })

  it("has the documented phases and steps", () => {
    const steps = new Map<string, Set<string>>()
    explore(6, (events, before, after) => {
      const [from, to, event] = [before.line.phase, after.line.phase, events.at(-1)!]
      // The diagram omits defects. It also omits requests that are in flight alongside another request, a place or a
      // holder.
      const isAlone = before.asking.length <= (before.isHeld || before.place !== "none" ? 0 : 1)
      if (from === to || event === "Crashed" || !isAlone) return
      const step = `${from} --> ${to}`
      steps.set(step, (steps.get(step) ?? new Set()).add(event))
    })
    const arrows = [...steps].map(([step, events]) => `${step}: ${[...events].sort().join(", ")}`)
    assert.deepStrictEqual(diagramOf("idle"), ["[*] --> idle", ...arrows].sort())
  })
})
