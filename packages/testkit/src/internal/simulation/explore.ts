/**
 * Runs every schedule with a limited number of deviations, in order of their number. Each run starts from the beginning
 * and replays its deviations. The state of a process is in its fibers, which cannot be compared, so two states that
 * look equal may have different futures. Only a kill with the same outcome as an earlier one is skipped: a killed
 * process has no state.
 */
import { Choices, type Deviation, type Deviations } from "./choices.ts"
import { format as formatEvent } from "./history.ts"
import type { Outcome, Setup } from "./setup.ts"

export interface Explored {
  /** Runs. */
  readonly schedules: number
  /**
   * Skipped schedules, including those in `branches`: their last deviation is a kill with the same outcome as an
   * earlier one.
   */
  readonly skipped: number
  /** The number of different histories. */
  readonly states: number
  /** Schedules that ended in a violation. */
  readonly violations: number
  /** The first violation, with the fewest deviations. */
  readonly first: { readonly schedule: ReadonlyArray<Deviation>; readonly outcome: Outcome } | undefined
  /** Whether every schedule was run, and not only those before a violation. */
  readonly isComplete: boolean
  /** The schedules with one more deviation than the one with which the exploration began. */
  readonly branches: ReadonlyArray<ReadonlyArray<Deviation>>
}

export interface Limits {
  /** The maximum number of deviations of a schedule. */
  readonly maxDeviations: number
  /** Ends at the first violation. */
  readonly stopsAtFirst: boolean
  /** Only schedules that start with this one. */
  readonly within: ReadonlyArray<Deviation>
}

/** A hash of the history of a run: two numbers of 32 bits combined into 53 bits. */
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

/** A run, and the point from which other schedules may branch off. */
interface Branch {
  readonly schedule: ReadonlyArray<Deviation>
  readonly from: number
  readonly open: ReadonlyArray<ReadonlyArray<string>>
}

/** `deviations`: the kinds that may occur. */
export const explore = (
  setup: Setup<never>,
  deviations: Deviations,
  limits: Limits,
  run: (setup: Setup<never>) => Outcome
): Explored => {
  const histories = new Set<number>()
  let [schedules, skipped, violations, isComplete] = [0, 0, 0, true]
  let first: Explored["first"]

  /** Runs a schedule. Returns where others may branch off, unless the run failed. */
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

/** Replays one schedule. */
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
