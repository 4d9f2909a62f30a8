/** The points at which a run of an exploration may deviate from the one in which nothing goes wrong. */
import type { Choices, Deviations } from "./choices.ts"
import { faultActions } from "./faultActions.ts"
import type { Process, ProcessSlot } from "./process.ts"
import type { Processes } from "./processes.ts"
import type { RunState } from "./runState.ts"

/** A multiple of 100 ms, so that two kills have the same outcome if nothing happens between them. */
const restartAt = (time: number) => Math.ceil((time + 50) / 100) * 100

const millisIn = (choice: string) => Number(/ (-?[\d.]+) ms$/.exec(choice)?.[1])

/** The choice names a client and its fate, such as `c1 request lost`. */
export const install = (
  state: RunState,
  processes: Processes,
  choices: Choices,
  deviations: Deviations
): void => {
  const { server, slots, world } = state
  const actions = faultActions(state, processes)
  const { delays, pauses, serverSteps, setAside } = deviations

  const fateOf = (slot: ProcessSlot) => {
    const of = (what: string) => [
      ...delays.map((millis) => `${slot.name} ${what} late by ${millis} ms`),
      // An open connection loses no message
      ...(deviations.losses && what !== "message" ? [`${slot.name} ${what} lost`] : []),
      ...(deviations.cuts ? [`${slot.name} cut before the ${what}`] : [])
    ]
    const alternatives = { request: of("request"), reply: of("reply"), message: of("message") }
    return (what: "request" | "reply" | "message", args: ReadonlyArray<string>) => {
      if (what === "request") slot.process.acts++
      const choice = choices.choose(alternatives[what])
      if (choice === undefined) return 0
      if (choice.includes(" cut ")) return "cut"
      if (choice.endsWith(" lost")) return "lost"
      const millis = millisIn(choice)
      slot.disturbedAt = world.now()
      slot.lateUntil = Math.max(slot.lateUntil, world.now() + millis)
      state.fault(`late ${what}`, slot.name, args[0] ?? "")
      return millis
    }
  }

  for (const slot of slots) server.link(slot.name).fate = fateOf(slot)

  /** The state at the last point of a kill, by process. */
  const lastKills = new WeakMap<Process, string>()
  /**
   * A kill has the same outcome as the one before it if nothing happened between the two: the process has sent nothing,
   * the server has run nothing, nothing was noted, and the next process starts at the same instant.
   */
  const isNewKill = ({ process }: ProcessSlot) => {
    if (!choices.isOpen) return false
    const now = `${process.acts} ${state.events.length} ${restartAt(world.now())}`
    if (lastKills.get(process) === now) {
      choices.skip()
      return false
    }
    lastKills.set(process, now)
    return true
  }

  const arrived = (slot: ProcessSlot) => {
    const { interruptible } = slot.process
    const choice = choices.choose([
      ...pauses.map((millis) => `${slot.name} paused for ${millis} ms`),
      ...(deviations.kills && isNewKill(slot) ? [`${slot.name} killed`] : []),
      ...(deviations.interruptions ? [...interruptible.keys()].map((name) => `${slot.name} interrupts ${name}`) : [])
    ])
    if (choice === undefined) return
    if (choice.endsWith(" killed")) return actions.kill(slot.index, restartAt(world.now()) - world.now())
    const name = choice.split(" interrupts ")[1]
    if (name !== undefined) {
      state.fault("interrupt", slot.name, name)
      return interruptible.get(name)!()
    }
    actions.pause(slot.index, false)
    actions.after(millisIn(choice), () => actions.resume(slot.index))
  }
  processes.onArrival = (slot) => {
    if (slot.process.state === "running") arrived(slot)
  }
  processes.setAside = setAside.length === 0
    ? undefined
    : (slot) => {
      const choice = choices.choose(setAside.map((millis) => `${slot.name} fiber set aside for ${millis} ms`))
      if (choice === undefined) return 0
      state.fault("set aside", slot.name)
      return millisIn(choice)
    }

  const afterCommand = [
    ...serverSteps.map((millis) => `server clock steps by ${millis} ms`),
    ...(deviations.failOvers ? ["server fails over without its last write"] : [])
  ]
  server.listeners.add((command) => {
    if (command === undefined || command.role === "subscriber") return
    const choice = choices.choose(afterCommand)
    if (choice === undefined) return
    state.after(0, () => choice.includes(" steps ") ? actions.stepServer(millisIn(choice)) : actions.failOver(1, 0))
  })
}
