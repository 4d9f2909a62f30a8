/** Adds choice points to a run in an exploration, and carries out the chosen deviations. */
import type { Choices, Deviations, Place } from "./choices.ts"
import { faultActions } from "./faultActions.ts"
import type { ProcessSlot } from "./process.ts"
import type { Processes } from "./processes.ts"
import * as redundantKills from "./redundantKills.ts"
import type { RunState } from "./runState.ts"

const millisIn = (choice: string) => Number(/ (-?[\d.]+) ms$/.exec(choice)?.[1])

/** Installs the choice points. Each alternative names a client and an incident, such as `c1 request lost`. */
export const install = (
  state: RunState,
  processes: Processes,
  choices: Choices,
  deviations: Deviations
): void => {
  const { server, slots, world } = state
  const actions = faultActions(state, processes)
  const { delays, partitions, pauses, rates, serverSteps, setAside, suspensions, where } = deviations
  const isOpenAt = (slot: ProcessSlot, at: Place["at"], args: ReadonlyArray<string> = []) =>
    where === undefined || where({ client: slot.name, at, args })

  processes.onReady = () => {
    for (const slot of slots) {
      const choice = choices.choose(rates.map((rate) => `${slot.name} clocks run at ${rate} of their rate`))
      if (choice === undefined) continue
      const rate = Number(/ at ([\d.]+) of/.exec(choice)?.[1])
      state.fault("clock rate", slot.name, String(rate))
      slot.process.setRate(rate)
    }
  }

  /** Ends a cut-off or a pause, unless the exploration has already ended and healed it. */
  const untilOver = (millis: number, end: () => void) =>
    actions.after(millis, () => {
      if (state.phase === "safety") end()
    })

  const cutOff = ({ index }: ProcessSlot, millis: number) => {
    const both = ["requests", "replies"] as const
    for (const direction of both) actions.hold(index, direction, "partition")
    untilOver(millis, () => {
      for (const direction of both) actions.release(index, direction, "partition")
    })
    return 0
  }

  const fateOf = (slot: ProcessSlot) => {
    const of = (what: string) => [
      ...delays.map((millis) => `${slot.name} ${what} late by ${millis} ms`),
      // While its connection is open, a published message cannot be lost
      ...(deviations.losses && what !== "message" ? [`${slot.name} ${what} lost`] : []),
      ...(deviations.cuts ? [`${slot.name} cut before the ${what}`] : []),
      ...(what === "request" ? partitions.map((millis) => `${slot.name} cut off for ${millis} ms`) : [])
    ]
    const alternatives = { request: of("request"), reply: of("reply"), message: of("message") }
    return (what: "request" | "reply" | "message", args: ReadonlyArray<string>) => {
      if (what === "request") slot.process.acts++
      const choice = isOpenAt(slot, what, args) ? choices.choose(alternatives[what]) : undefined
      if (choice === undefined) return 0
      if (choice.includes(" cut before ")) return "cut"
      if (choice.endsWith(" lost")) return "lost"
      const millis = millisIn(choice)
      if (choice.includes(" cut off ")) return cutOff(slot, millis)
      slot.disturbedAt = world.now()
      slot.lateUntil = Math.max(slot.lateUntil, world.now() + millis)
      state.fault(`late ${what}`, slot.name, args[0] ?? "")
      return millis
    }
  }

  for (const slot of slots) server.link(slot.name).fate = fateOf(slot)

  const isNewKill = redundantKills.make(state, choices)

  const arrived = (slot: ProcessSlot) => {
    if (!isOpenAt(slot, "arrival")) return
    const { interruptible } = slot.process
    const choice = choices.choose([
      ...pauses.map((millis) => `${slot.name} paused for ${millis} ms`),
      ...suspensions.map((millis) => `${slot.name} suspended for ${millis} ms`),
      ...(deviations.kills && isNewKill(slot) ? [`${slot.name} killed`] : []),
      ...(deviations.interruptions ? [...interruptible.keys()].map((name) => `${slot.name} interrupts ${name}`) : [])
    ])
    if (choice === undefined) return
    if (choice.endsWith(" killed")) return actions.kill(slot.index, redundantKills.restartAt(world.now()) - world.now())
    const name = choice.split(" interrupts ")[1]
    if (name !== undefined) {
      state.fault("interrupt", slot.name, name)
      return interruptible.get(name)!()
    }
    actions.pause(slot.index, choice.includes(" suspended "))
    untilOver(millisIn(choice), () => actions.resume(slot.index))
  }
  processes.onArrival = (slot) => {
    if (slot.process.state === "running") arrived(slot)
  }
  processes.setAside = setAside.length === 0
    ? undefined
    : (slot) => {
      if (!isOpenAt(slot, "fiber")) return 0
      const choice = choices.choose(setAside.map((millis) => `${slot.name} fiber set aside for ${millis} ms`))
      if (choice === undefined) return 0
      state.fault("set aside", slot.name)
      return millisIn(choice)
    }

  const afterCommand = [
    ...serverSteps.map((millis) => `server clock steps by ${millis} ms`),
    ...(deviations.failovers ? ["server fails over without its last write"] : [])
  ]
  server.listeners.add((command) => {
    if (command === undefined || command.role === "subscriber") return
    const choice = choices.choose(afterCommand)
    if (choice === undefined) return
    state.after(0, () => choice.includes(" steps ") ? actions.stepServer(millisIn(choice)) : actions.failover(1, 0))
  })
}
