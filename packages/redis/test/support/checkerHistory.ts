/** Plays hand-written histories to the checkers in `simulate`. */
import type { Checker, Simulation } from "@effect-simba/testkit"

export type View = Parameters<Checker.Checker["start"]>[0]
export type Event = Simulation.Event
type Fields = Readonly<Record<string, string | number>>

const calm: Partial<View> = {
  lossAt: () => -Infinity,
  serverStepAt: () => -Infinity,
  clockStepAt: () => -Infinity,
  disturbedAt: () => -Infinity,
  resumedAt: () => -Infinity,
  lateness: () => 0,
  subscribers: () => 1
}

/** Returns the violations that a checker finds during and at the end of the history. */
export const found = (checker: Checker.Checker, events: Iterable<Event>, view: Partial<View> = {}) => {
  const messages: Array<string> = []
  const violated = (message: string) => void messages.push(message)
  const { isConverged, onConverged, onEvent } = checker.start({ ...calm, ...view, violated } as View)
  for (const event of events) onEvent?.(event)
  const hasConverged = isConverged?.() ?? true
  onConverged?.()
  return hasConverged ? messages.join("\n") : `not converged\n${messages.join("\n")}`
}

export const note = (at: number, kind: string, fields: Fields, client = "c1"): Event => ({
  _tag: "Note",
  at,
  client,
  generation: 1,
  kind,
  fields
})
export const command = (at: number, args: ReadonlyArray<string>, reply: unknown = "OK"): Event =>
  ({ _tag: "Command", at, command: { client: "c1", role: "commands", args, reply, micros: 0 } }) as Event
