// The state of a process that runs mutants: shared by the campaign, the Lua machine and the mutated modules.
import { readFileSync } from "node:fs"

/** What to run, as mutants.mjs wrote it. */
export const work = JSON.parse(readFileSync(process.env.MUTANTS_WORK, "utf8"))

export const cpuMillis = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

/** The tests of all loaded files. */
export const tests = globalThis.__mutantTests ??= []

const state = globalThis.__mutation ??= {
  /** The active mutant; undefined for the original. */
  active: undefined,
  /** The places that the original has reached; undefined if they are not counted. */
  reached: undefined,
  /** The CPU time after which the active mutant counts as one that never ends. */
  deadline: Infinity,
  activate: (mutant, millis) => {
    state.active = mutant
    state.deadline = mutant === undefined ? Infinity : cpuMillis() + millis
    globalThis.__mutant = mutant?.id ?? -1
  },
  /** Ends the attempt: the mutant loops in a script. */
  fail: () => {}
}

/** The id of the active mutant; negative if none is active. */
globalThis.__mutant ??= -1

/** Called by the original at each place that has mutants. */
globalThis.__reached ??= (id) => {
  if (state.reached !== undefined) state.reached.add(work.mutants[id].place)
}

let passed = 0
/** Called at each place while a mutant is active: a loop that never waits stops all timers. */
globalThis.__passed ??= () => {
  if ((++passed & 1023) === 0 && cpuMillis() > state.deadline) throw new Error("The mutant loops")
}

export const mutation = state
