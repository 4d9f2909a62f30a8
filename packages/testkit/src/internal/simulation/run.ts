/** One simulation, from start to end, synchronously: faults, then calm until all has converged, then closing. */
import type { LuaVm } from "@effect-simba/fake-redis/Engine"
import { install } from "./deviations.ts"
import { faultActions } from "./faultActions.ts"
import { linkFaults, only, start as startFaults } from "./faults.ts"
import type { Event } from "./history.ts"
import { Processes } from "./processes.ts"
import { RunState } from "./runState.ts"
import type { Outcome, Setup } from "./setup.ts"
import { viewOf } from "./view.ts"
import { Restless } from "./world.ts"

export const run = <E>(setup: Setup<E>, lua: LuaVm): Outcome => {
  const state = new RunState(setup, lua)
  const { server, slots, violations, world } = state
  const processes = new Processes(state)
  const checks = setup.checkers.map((checker) => checker.start(viewOf(state, checker.name)))
  for (const { onEvent } of checks) if (onEvent !== undefined) state.listeners.push(onEvent)
  listen(state)

  const calm = { requestDelay: setup.network.requestDelay, replyDelay: setup.network.replyDelay }
  for (let index = 0; index < setup.clients; index++) {
    server.link(`c${index + 1}`).faults = { ...calm, ...only(state.faults, linkFaults) }
    processes.add(index)
  }
  const { explored } = setup
  if (explored !== undefined) install(state, processes, explored.choices, explored.deviations)
  state.enter("safety")
  for (const slot of slots) {
    state.after(slot.index * 0.1, () => {
      if (slot.generation === 1 && slot.process.state === "running") processes.start(slot)
    })
  }
  startFaults(state.faults, state.prng, faultActions(state, processes), () => state.phase === "safety")

  const pass = (millis: number, done: () => boolean = () => false) => {
    const until = world.now() + millis
    try {
      while (world.now() < until && violations.length === 0 && !done()) {
        world.runUntil(Math.min(until, world.now() + 250))
      }
    } catch (error) {
      if (!(error instanceof Restless)) throw error
      state.violated("program", error.message)
    }
    return violations.length === 0
  }
  const converged = () => checks.every(({ isConverged }) => isConverged?.() ?? true)
  const heal = () => {
    if (explored !== undefined) explored.choices.isOpen = false
    state.enter("liveness")
    server.engine.setErrorState(undefined)
    if (state.serverFaults > 0) state.end(undefined)
    for (const slot of slots) {
      const link = server.link(slot.name)
      link.faults = calm
      if (link.isDeaf) {
        link.isDeaf = false
        link.reset()
      }
      for (const direction of ["requests", "replies"] as const) while (link.isHeld(direction)) link.release(direction)
      if (slot.faults > 0) slot.disturbedAt = world.now()
      slot.faults = 0
      slot.process.calm()
      state.resume(slot)
    }
    for (const slot of slots) if (slot.process.state === "dead") processes.restart(slot, slot.generation)
  }

  world.settle()
  if (pass(setup.duration)) {
    heal()
    if (pass(setup.calm) && pass(setup.liveness, converged)) {
      for (const { onConverged } of checks) onConverged?.()
      state.enter("closing")
      for (const { fiber } of slots) fiber?.interruptUnsafe()
      if (pass(setup.closing)) {
        state.enter("closed")
        for (const { onClosed } of checks) onClosed?.()
      }
    }
  }
  const { commands, enabled, events } = state
  return { enabled, violations, events, commands, virtualMillis: world.now() }
}

/** Puts into the history what the server runs, whose keys expire, and what becomes of the connections to it. */
const listen = (state: RunState) => {
  const { server, world } = state
  server.listeners.add((command) => {
    const at = world.now()
    if (command === undefined) {
      state.emit({ _tag: "Expiry", at })
      return state.emitOwners("expiry")
    }
    state.commands++
    const event: Event = { _tag: "Command", at, command }
    state.emit(event)
    state.emitOwners(event.command)
  })
  server.onLinkEvent = (event) => {
    const slot = state.slotOf(event.link)!
    slot.disturbedAt = world.now()
    slot.lateUntil = Math.max(slot.lateUntil, world.now() + (event.lasts ?? 0))
    state.fault(event.what, event.link, event.args?.slice(0, 1).join(" "))
  }
}
