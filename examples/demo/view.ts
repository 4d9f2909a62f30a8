/**
 * A live view of who is leading and who is waiting. In a terminal, it is redrawn in place; elsewhere, events are
 * printed line by line.
 */
import { Effect, Schedule, Stdio } from "effect"
import { now } from "../shared/clock.ts"
import { print, write } from "../shared/terminal.ts"
import type { Event } from "./events.ts"
import { leader, startOf, stateOf, waiting } from "./history.ts"
import * as plan from "./plan.ts"

const seconds = (millis: number) => `${(millis / 1000).toFixed(1)} s`

const escape = "\u001b["
const dim = (text: string) => `${escape}2m${text}${escape}0m`
const bold = (text: string) => `${escape}1;32m${text}${escape}0m`
const red = (text: string) => `${escape}31m${text}${escape}0m`

const row = (history: ReadonlyArray<Event>, worker: string, at: number): string => {
  const span = stateOf(history, worker)
  const since = seconds(Math.max(0, at - span.from))
  const name = `  ${worker.padEnd(6)}`
  switch (span.state) {
    case "leading":
      return name + bold(`leads        ${since}   token ${span.token}`)
    case "waiting":
      return name + `waits        ${since}   place ${waiting(history).indexOf(worker) + 1}`
    case "crashed":
      return name + red("killed")
    case "interrupted":
      return name + red("interrupted")
    case "failed":
      return name + red("failed")
    default:
      return name + dim(span.state)
  }
}

const frame = (history: ReadonlyArray<Event>, at: number): ReadonlyArray<string> => [
  dim(`  ${plan.mutex}, ${seconds(history.length === 0 ? 0 : at - startOf(history))}`),
  ...plan.workers.map((worker) => row(history, worker, at))
]

/** Redraws the view in place ten times a second, until the scope closes. */
const live = Effect.gen(function*() {
  let shown: ReadonlyArray<Event> = []
  let drawn = 0
  const draw = Effect.flatMap(now, (at) => {
    const lines = frame(shown, at)
    const up = drawn === 0 ? "" : `${escape}${drawn}A`
    drawn = lines.length
    return write(up + lines.map((line) => `${escape}2K${line}\n`).join(""))
  })
  yield* Effect.acquireRelease(
    write(`${escape}?25l`),
    () => Effect.andThen(draw, write(`${escape}?25h`))
  )
  yield* Effect.forkScoped(Effect.repeat(draw, Schedule.spaced("100 millis")))
  return (event: Event, history: ReadonlyArray<Event>) =>
    Effect.sync(() => {
      if (event._tag !== "Note") shown = [...history]
    })
})

const said = (event: Event): string | undefined => {
  switch (event._tag) {
    case "Waiting":
      return event.term === 1 ? "has started" : undefined
    case "Leading":
      return `leads with token ${event.token}`
    case "Crashed":
      return "was killed"
    case "Interrupted":
      return "was interrupted"
    case "Finished":
      return "has finished"
    case "Lost":
      return `lost its lease: ${event.reason}`
    case "Failed":
      return `failed: ${event.problem}`
    case "Note":
      return `says: ${event.text}`
    default:
      return undefined
  }
}

const plain = (event: Event, history: ReadonlyArray<Event>) => {
  const what = said(event)
  if (what === undefined) return Effect.void
  const waiters = waiting(history)
  const who = leader(history) !== undefined && event._tag === "Leading" && waiters.length > 0
    ? `   waiting: ${waiters.join(", ")}`
    : ""
  return print([`  ${seconds(event.at - startOf(history)).padStart(6)}  ${event.worker.padEnd(5)} ${what}${who}`])
}

/** The handler for each event. */
export const make = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const onEvent = (yield* stdio.stdoutIsTerminal) ? yield* live : plain
  return (event: Event, history: ReadonlyArray<Event>) =>
    Effect.provideService(onEvent(event, history), Stdio.Stdio, stdio)
})
