// What is under test in a process that runs mutants: shared by the runner, the Lua machine and the mutated modules.
import { readFileSync } from "node:fs"

/** What to run, as main.mjs wrote it. */
export const work = JSON.parse(readFileSync(process.env.MUTANTS_WORK, "utf8"))

const state = globalThis.__mutation ??= {
  /** The mutant that runs; undefined for the original. */
  active: undefined,
  /** The places that the original has reached; undefined if nobody counts them. */
  reached: undefined,
  /** The CPU time after which a mutant counts as one that never ends. */
  deadline: Infinity,
  /** Whether it has computed for so long: a loop that never waits stops all timers. */
  isOverdue: () => {
    const { system, user } = process.cpuUsage()
    return (system + user) / 1000 > state.deadline
  },
  /** Called if so. */
  overdue: () => {},
  /** Ends the attempt: the mutant loops in a script. */
  fail: () => {}
}

/** Called at each mutated place of a TypeScript module. */
globalThis.__mutant = (id) => {
  state.reached?.add(String(id))
  return state.active?.id === id
}

export const mutation = state
