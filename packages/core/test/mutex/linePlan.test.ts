/** Every sequence of events of a line, and the picture of its phases in the documentation. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import * as linePlan from "../../src/internal/mutex/linePlan.ts"

/** What an interpreter has: fibers, the place, and the lease. */
interface World {
  readonly line: linePlan.Line
  asking: number
  waiting: number
  isHeld: boolean
  /** A place ends with a grant, a defect, or when it is abandoned. */
  place: "none" | "listening" | "contending"
  readonly problems: Array<string>
}

const begin = (): World => ({
  line: linePlan.make(),
  asking: 0,
  waiting: 0,
  isHeld: false,
  place: "none",
  problems: []
})

const copy = (world: World): World => ({ ...world, line: { ...world.line }, problems: [...world.problems] })

/** At most three fibers want the mutex. */
const eventsOf = ({ asking, isHeld, place, waiting }: World): ReadonlyArray<linePlan.Event> => {
  const hasRoom = asking + waiting + (isHeld ? 1 : 0) < 3
  const all: ReadonlyArray<readonly [linePlan.Event, boolean]> = [
    ["Asked", hasRoom && !isHeld && waiting === 0],
    ["Granted", asking > 0],
    ["Refused", asking > 0],
    ["JoinedFirst", asking > 0],
    ["Joined", hasRoom],
    ["Left", waiting > 0],
    ["Won", place === "contending" && waiting > 0],
    ["HandedOn", isHeld && waiting > 0],
    ["Released", isHeld],
    ["Lost", isHeld],
    ["Crashed", place !== "none"]
  ]
  return all.flatMap(([event, isPossible]) => isPossible ? [event] : [])
}

const happen = (world: World, event: linePlan.Event): void => {
  if (event === "Asked") world.asking++
  if (event === "Granted" || event === "Refused" || event === "JoinedFirst") world.asking--
  if (event === "JoinedFirst" || event === "Joined") world.waiting++
  if (event === "Left" || event === "Won" || event === "HandedOn") world.waiting--
  if (event === "Granted" || event === "Won" || event === "HandedOn") world.isHeld = true
  if (event === "Released" || event === "Lost") world.isHeld = false
  if (event === "Won" || event === "Crashed") world.place = "none"
  if (event === "Crashed" && world.waiting > 0) world.waiting--
  const expect = (condition: boolean, problem: string) => {
    if (!condition) world.problems.push(problem)
  }
  switch (linePlan.next(world.line, event)) {
    case "listen":
      expect(world.place === "none", "a second place")
      world.place = "listening"
      return
    case "contend":
      expect(world.place !== "contending", "contends twice")
      world.place = "contending"
      return
    case "requeue":
      expect(event === "Released" && world.place === "listening", "queues a place that does not listen")
      world.place = "contending"
      return
    case "abandon":
      expect(world.place !== "none", "abandons nothing")
      world.place = "none"
  }
}

/** Calls `see` with each sequence of so many events, and the world after its last one. */
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

describe("the line of the fibers that want one mutex", () => {
  const length = 7

  /** After each event of each sequence. */
  const always = (holds: (after: World, event: linePlan.Event, before: World) => boolean) =>
    explore(length, (events, before, after) => {
      if (!holds(after, events.at(-1)!, before)) assert.fail(events.join(", "))
    })

  it("counts its fibers, and has one place at most, which ends once", () =>
    always(({ asking, isHeld, line, place, problems, waiting }) =>
      problems.length === 0 && line.asking === asking && line.waiting === waiting && line.place === place &&
      linePlan.isHeld(line) === isHeld
    ))

  it("H1, H4: where nobody holds it or requests it, the first waiter's place contends", () =>
    always(({ asking, isHeld, line, place, waiting }) =>
      isHeld || asking > 0 || waiting === 0 || (place === "contending" && line.phase === "contending")
    ))

  it("H4: where others wait for a holder, their place listens before its release is sent", () =>
    always(({ isHeld, place, waiting }) => !isHeld || waiting === 0 || place !== "none"))

  it("H2: a release queues the place that listens", () =>
    always(({ place }, event, before) =>
      event !== "Released" || before.waiting === 0 || before.place !== "listening" || place === "contending"
    ))

  it("H7: nothing remains in the queue of the fleet when nobody waits", () =>
    always(({ isHeld, place, waiting }) => waiting > 0 || isHeld || place === "none"))

  it("is idle when no fiber wants the mutex, and only then", () =>
    always(({ asking, isHeld, line, waiting }) =>
      (line.phase === "idle") === (asking === 0 && waiting === 0 && !isHeld)
    ))

  it("refuses events that it cannot have", () => {
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
          linePlan.next({ ...after.line }, event)
          wrong.push(`${after.line.phase}: ${event}`)
        } catch {}
      }
    })
    assert.deepStrictEqual([...new Set(wrong)], [])
  })

  it("has the phases and steps that the documentation shows", () => {
    const page = readFileSync(new URL("../../../../docs/protocol.md", import.meta.url), "utf8")
    const [, diagram = ""] = /stateDiagram-v2\n(\s*\[\*\] --> idle[^`]*)```/.exec(page) ?? []
    const shown = diagram.trim().split("\n").map((line) => line.trim()).sort()
    const steps = new Map<string, Set<string>>()
    explore(6, (events, before, after) => {
      const [from, to, event] = [before.line.phase, after.line.phase, events.at(-1)!]
      // Without defects, and where no request is under way beside others or beside a holder
      const isAlone = before.asking <= (before.isHeld || before.place !== "none" ? 0 : 1)
      if (from === to || event === "Crashed" || !isAlone) return
      const step = `${from} --> ${to}`
      steps.set(step, (steps.get(step) ?? new Set()).add(event))
    })
    const arrows = [...steps].map(([step, events]) => `${step}: ${[...events].sort().join(", ")}`)
    assert.deepStrictEqual(shown, ["[*] --> idle", ...arrows].sort())
  })
})
