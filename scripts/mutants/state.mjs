// The state of a worker process, shared by the campaign, the Lua machine and the mutated modules.
import { readFileSync } from "node:fs"

/** The work list that mutants.mjs wrote. */
export const work = JSON.parse(readFileSync(process.env.MUTANTS_WORK, "utf8"))

export const cpuMillis = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

/** The tests of all files loaded so far. */
export const tests = globalThis.__mutantTests ??= []

const state = globalThis.__mutation ??= {
  /** The active mutant; undefined while the original runs. */
  active: undefined,
  /** The places that the original has reached; undefined unless coverage is being measured. */
  reached: undefined,
  /** The CPU time at which the active mutant is considered to loop forever. */
  deadline: Infinity,
  activate: (mutant, millis) => {
    state.active = mutant
    state.deadline = mutant === undefined ? Infinity : cpuMillis() + millis
    globalThis.__mutant = mutant?.id ?? -1
  },
  /** Called when the mutant loops in a script; makes the attempt fail. */
  fail: () => {}
}

/** The id of the active mutant; -1 if none is active. */
globalThis.__mutant ??= -1

/** Called at each place that has mutants while the original runs. */
globalThis.__reached ??= (id) => {
  if (state.reached !== undefined) state.reached.add(work.mutants[id].place)
}

let passed = 0
/** Called at each place while a mutant is active. Detects loops that never wait and thus block all timers. */
globalThis.__passed ??= () => {
  if ((++passed & 1023) === 0 && cpuMillis() > state.deadline) throw new Error("The mutant loops")
}

export const mutation = state
