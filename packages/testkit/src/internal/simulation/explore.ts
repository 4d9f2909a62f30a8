/**
 * Runs every schedule with a limited number of deviations, starting with the fewest. Each run starts from the beginning
 * and replays its deviations. A process's state is in its fibers, which cannot be compared, so even states that look
 * equal are all explored. The only exception is a kill with the same outcome as an earlier kill, because a killed
 * process has no state.
 */
import { Choices, type Deviation, type Deviations } from "./choices.ts"
import { format as formatEvent } from "./history.ts"
import type { Outcome, Setup } from "./setup.ts"

export interface Explored {
  /** The number of runs. */
  readonly schedules: number
  /**
   * The number of schedules that were skipped because their last kill has the same outcome as an earlier kill. Includes
   * skipped schedules from `branches`.
   */
  readonly skipped: number
  /** The number of distinct histories. */
  readonly states: number
  /** The number of schedules that ended with a violation. */
  readonly violations: number
  /** The first violation found. No other violation has fewer deviations. */
  readonly first: { readonly schedule: ReadonlyArray<Deviation>; readonly outcome: Outcome } | undefined
  /** Whether every schedule was run. False if the search stopped at a violation. */
  readonly isComplete: boolean
  /** The schedules with one more deviation than `within`. */
  readonly branches: ReadonlyArray<ReadonlyArray<Deviation>>
}

export interface Limits {
  /** The maximum number of deviations in a schedule. */
  readonly maxDeviations: number
  /** Whether to stop at the first violation. */
  readonly stopsAtFirst: boolean
  /** Explores only schedules that extend this one. */
  readonly within: ReadonlyArray<Deviation>
}

/** Hashes a run's history to 53 bits, by combining two 32-bit hashes. */
const digest = ({ events }: Outcome): number => {
  let [a, b] = [0x811c9dc5, 0x9e3779b9]
  for (const event of events) {
    const line = formatEvent(event)
    for (let i = 0; i < line.length; i++) {
      const code = line.charCodeAt(i)
      a = Math.imul(a ^ code, 0x01000193)
      b = Math.imul(b ^ code, 0x85ebca6b) + (b >>> 13)
    }
  }
  return (a >>> 0) * 0x200000 + ((b >>> 0) & 0x1fffff)
}

/** A schedule that was run, and the choice points where others may branch off. */
interface Branch {
  readonly schedule: ReadonlyArray<Deviation>
  readonly from: number
  readonly open: ReadonlyArray<ReadonlyArray<string>>
}

/** Explores a program. `deviations` says which kinds may occur. */
export const explore = (
  setup: Setup<never>,
  deviations: Deviations,
  limits: Limits,
  run: (setup: Setup<never>) => Outcome
): Explored => {
  const histories = new Set<number>()
  let [schedules, skipped, violations, isComplete] = [0, 0, 0, true]
  let first: Explored["first"]

  /** Runs a schedule. Returns its branch, or `undefined` if there was a violation. */
  const visit = (schedule: ReadonlyArray<Deviation>): Branch | undefined => {
    const choices = new Choices(schedule)
    const outcome = run({ ...setup, explored: { choices, deviations } })
    choices.check()
    schedules++
    if (schedule === limits.within || schedule.length < limits.maxDeviations) skipped += choices.skipped
    histories.add(digest(outcome))
    if (outcome.violations.length === 0) return { schedule, from: choices.from, open: choices.open }
    violations++
    first ??= { schedule, outcome }
    if (limits.stopsAtFirst) isComplete = false
    return undefined
  }

  const extensions = ({ from, open, schedule }: Branch) =>
    open.flatMap((alternatives, i) => alternatives.map((choice) => [...schedule, { point: from + i, choice }]))
  const root = visit(limits.within)
  const branches = root === undefined ? [] : extensions(root)
  let level = root === undefined ? [] : [root]
  for (let depth = limits.within.length + 1; depth <= limits.maxDeviations && isComplete; depth++) {
    const next: Array<Branch> = []
    for (const branch of level) {
      for (const schedule of extensions(branch)) {
        const found = visit(schedule)
        if (!isComplete) return { schedules, skipped, states: histories.size, violations, first, isComplete, branches }
        if (found !== undefined && depth < limits.maxDeviations) next.push(found)
      }
    }
    level = next
  }
  return { schedules, skipped, states: histories.size, violations, first, isComplete, branches }
}

export const replay = (
  setup: Setup<never>,
  deviations: Deviations,
  schedule: ReadonlyArray<Deviation>,
  run: (setup: Setup<never>) => Outcome
): Outcome => {
  const choices = new Choices(schedule)
  const outcome = run({ ...setup, explored: { choices, deviations } })
  choices.check()
  return outcome
}
