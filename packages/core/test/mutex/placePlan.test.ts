/** Checks all short sequences of a place's events, and the documented diagram of its phases. */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import type { Ticket } from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import type { Refused } from "../../src/internal/mutex/attempt.ts"
import * as placePlan from "../../src/internal/mutex/placePlan.ts"
import { diagramOf } from "../support/diagram.ts"

const refused: Refused = {
  _tag: "Refused",
  ownership: { _tag: "Held", owner: "1-bbbbbbbbbbbb:them" },
  ticket: "1700000000.000001" as Ticket,
  position: 0,
  foreign: false,
  sent: { monotonic: 0, wall: 0 }
}
const grant = { token: 500 as FencingToken, micros: 1, millis: 16_000 }

const events = {
  Contend: { _tag: "Contend" },
  Requeue: { _tag: "Requeue" },
  "Settled, refused": { _tag: "Settled", ticket: refused.ticket, refused },
  "Settled, unknown": { _tag: "Settled" },
  Refused: { _tag: "Refused", refused },
  Granted: { _tag: "Granted", isStillFirst: true },
  "Granted to another": { _tag: "Granted", isStillFirst: false },
  Turn: { _tag: "Heard", wakeUp: { _tag: "YourTurn", grant } },
  Gap: { _tag: "Heard", wakeUp: { _tag: "Gap" } },
  AskBy: { _tag: "AskBy", at: 1000 },
  Rang: { _tag: "Rang" },
  End: { _tag: "End" }
} as const satisfies Record<string, placePlan.Event>
type Name = keyof typeof events

/** What can happen to the plan's interpreter. */
const possible: Record<placePlan.Phase, ReadonlyArray<Name>> = {
  prepared: ["Contend", "Requeue", "Turn", "Gap", "AskBy", "End"],
  requeueing: ["Settled, refused", "Settled, unknown", "Granted", "Turn", "Gap", "AskBy", "End"],
  asking: ["Refused", "Granted", "Granted to another", "Turn", "Gap", "AskBy", "End"],
  asleep: ["Turn", "Gap", "AskBy", "Rang", "End"],
  over: ["Turn", "Gap", "AskBy", "End"]
}

interface Step {
  readonly from: placePlan.Phase
  readonly name: Name
  readonly commands: ReadonlyArray<placePlan.Command>
  readonly to: placePlan.Phase
}

/** Applies one event, and the interpreter's immediate reactions to `sleep` and `judge`. */
const step = (place: placePlan.Place, name: Name): Step => {
  const from = place.phase
  const commands = [placePlan.next(place, events[name])]
  if (commands[0] === "sleep") commands.push(placePlan.next(place, { _tag: "AskBy", at: 5000 }))
  if (commands[0] === "judge") commands.push(placePlan.next(place, { _tag: "Doubted" }))
  return { from, name, commands, to: place.phase }
}

/** Calls `see` with each sequence of up to `length` events, and with the place before and after the last step. */
const explore = (
  length: number,
  see: (steps: ReadonlyArray<Step>, before: placePlan.Place, after: placePlan.Place) => void
) => {
  const go = (place: placePlan.Place, steps: ReadonlyArray<Step>) => {
    if (steps.length === length) return
    for (const name of possible[place.phase]) {
      const after = { ...place }
      const more = [...steps, step(after, name)]
      see(more, place, after)
      go(after, more)
    }
  }
  go(placePlan.make(), [])
}

/** Builds the message only on failure, because building it for every sequence would dominate the run time. */
const holds = (condition: boolean, steps: ReadonlyArray<Step>) => {
  if (!condition) assert.fail(JSON.stringify(steps))
}

const isRequest = (command: placePlan.Command) =>
  command === "ask" || command === "askAfterOthers" || command === "confirm"
const wakes = (command: placePlan.Command) => command === "askAfterOthers" || command === "judge"
const hears = (name: Name) => name === "Turn" || name === "Gap"

describe("a place in the fleet's queue", () => {
  const length = 7

  it("has at most one request in flight, and sends the next one only after a reply", () =>
    explore(length, (steps) => {
      const last = steps.at(-1)!
      const asks = last.commands.some(isRequest)
      holds(last.commands.filter(isRequest).length <= 1, steps)
      holds((last.to === "asking") === (asks || (last.from === "asking" && last.to === "asking")), steps)
      holds(
        !asks || last.from !== "asking" || last.name === "Refused" || last.name === "Granted to another",
        steps
      )
    }))

  it("H4: sleeps only after handling all messages and setting a timer", () =>
    explore(length, (steps, _before, after) => {
      if (after.phase !== "asleep") return
      holds(after.heard === undefined && after.refused !== undefined && Number.isFinite(after.askAt), steps)
      // The timer is set to the earliest poll time since the place last woke up
      const woke = steps.findLastIndex(({ commands }) => commands.some(wakes))
      const isEarly = steps.slice(woke + 1).some(({ name }) => name === "AskBy")
      holds(after.askAt === (isEarly ? 1000 : 5000) && steps.at(-1)!.commands.at(-1) === "setTimer", steps)
    }))

  it("H4: sends a request or judges a grant after each message before it sleeps", () =>
    explore(length, (steps) => {
      const heard = steps.findLastIndex(({ name }) => hears(name))
      if (heard === -1 || steps.at(-1)!.to !== "asleep") return
      holds(steps.slice(heard).some(({ commands }) => commands.some(isRequest)), steps)
    }))

  it("H5: judges a grant only after a reply and if no gap preceded the grant", () =>
    explore(length, (steps, before) => {
      const last = steps.at(-1)!
      if (!last.commands.includes("judge")) return
      holds(last.name === "Refused" || last.name === "Settled, refused" || before.refused !== undefined, steps)
      const names = steps.map(({ name }) => name)
      // Messages that arrived before the last request have already been handled
      const woke = steps.slice(0, -1).findLastIndex(({ commands }) => commands.some(wakes))
      const first = names.slice(woke + 1).find(hears)
      holds(first === undefined || first === "Turn", steps)
    }))

  it("wins only by a grant to the current first waiter, and then ends", () =>
    explore(length, (steps) => {
      const last = steps.at(-1)!
      holds(last.commands.includes("win") === (last.name === "Granted" && last.to === "over"), steps)
    }))

  it("ends the pause before a retry when its turn comes, but not on a gap", () =>
    explore(length, (steps) => {
      const last = steps.at(-1)!
      holds(last.commands.includes("askNow") === (last.name === "Turn" && last.from === "asking"), steps)
    }))

  it("keeps its ticket if a reply contains none", () => {
    const place = placePlan.make()
    placePlan.next(place, events.Contend)
    placePlan.next(place, events.Refused)
    placePlan.next(place, events.AskBy)
    placePlan.next(place, events.Rang)
    placePlan.next(place, { _tag: "Refused", refused: { ...refused, ticket: undefined } })
    assert.strictEqual(place.ticket, refused.ticket)
  })

  it("H7: does nothing once it has ended", () =>
    explore(length, (steps) => {
      const last = steps.at(-1)!
      holds(last.from !== "over" || (last.to === "over" && last.commands.join() === "nothing"), steps)
    }))

  it("ignores each event", () => {
    for (const event of Object.values(events)) {
      const place = { ...placePlan.make(), phase: "over" as const }
      assert.strictEqual(placePlan.next(place, event), "nothing", event._tag)
      assert.strictEqual(place.phase, "over")
    }
  })

  it("throws if it receives Doubted while it is not judging a grant", () => {
    for (const phase of ["prepared", "requeueing", "asleep"] as const) {
      assert.throws(
        () => placePlan.next({ ...placePlan.make(), phase }, { _tag: "Doubted" }),
        "event Doubted is impossible"
      )
    }
  })

  it("refuses events that cannot occur in its phase", () => {
    const wrong: Array<string> = []
    for (const phase of Object.keys(possible) as Array<placePlan.Phase>) {
      for (const name of Object.keys(events) as Array<Name>) {
        if (possible[phase].includes(name)) continue
        try {
          placePlan.next({ ...placePlan.make(), phase }, events[name])
          // All phases keep messages and poll times
          if (!hears(name) && name !== "AskBy" && phase !== "over") wrong.push(`${phase}, ${name}`)
        } catch {}
      }
    }
    assert.deepStrictEqual(wrong, [])
  })

  it("has the documented phases and steps", () => {
    const arrows = new Set<string>()
    explore(6, (steps) => {
      const { from, name, to } = steps.at(-1)!
      if (from !== to && name !== "End" && name !== "Granted" && from !== "over") {
        arrows.add(`${from} --> ${to}: ${name.startsWith("Settled") ? "Settled" : hears(name) ? "Heard" : name}`)
      }
    })
    assert.deepStrictEqual(diagramOf("prepared"), ["[*] --> prepared", ...arrows].sort())
  })
})
