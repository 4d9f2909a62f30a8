/**
 * Decides which kills an exploration leaves out: those with the same outcome as the previous kill of the same process.
 * Called by `deviations` at each choice point with a kill.
 */
import type { Choices } from "./choices.ts"
import type { Process, ProcessSlot } from "./process.ts"
import type { RunState } from "./runState.ts"

/**
 * When the next process starts after a kill. The time is rounded to a multiple of 100 ms: two kills then have the same
 * outcome if nothing happens between them.
 */
export const restartAt = (time: number) => Math.ceil((time + 50) / 100) * 100

export const make = (state: RunState, choices: Choices) => {
  /** Each process's state at its last choice point with a kill. */
  const lastKills = new WeakMap<Process, string>()
  /**
   * Whether a kill may have a different outcome than the previous one. It cannot if nothing has happened since: the
   * process has sent nothing, the server has run nothing, nothing was noted, and the next process would start at the
   * same instant.
   */
  return ({ process }: ProcessSlot): boolean => {
    if (!choices.isOpen) return false
    const now = `${process.acts} ${state.events.length} ${restartAt(state.world.now())}`
    if (lastKills.get(process) === now) {
      choices.skip()
      return false
    }
    lastKills.set(process, now)
    return true
  }
}
