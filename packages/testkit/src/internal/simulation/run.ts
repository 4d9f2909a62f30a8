/**
 * Runs one simulation synchronously. `Simulation.run` calls `run`, and `Simulation.begin` drives `begin` through
 * `live`. The simulation starts with faults, continues without faults until everything has converged, and then closes
 * all scopes.
 *
 * In an exploration (`setup.explored`), faults are deviations at choice points. The phase with faults ends as soon as
 * `setup.isOver` returns true, which is checked every 50 ms.
 */
import type { LuaVm } from "@effect-simba/fake-redis/Engine"
import { install } from "./deviations.ts"
import { faultActions } from "./faultActions.ts"
import { linkFaults, only, start as startFaults, type Victims } from "./faults.ts"
import type { Event } from "./history.ts"
import { Processes } from "./processes.ts"
import { RunState } from "./runState.ts"
import type { Checker, Outcome, Setup } from "./setup.ts"
import { viewOf } from "./view.ts"
import { Restless } from "./world.ts"

export interface Running {
  readonly state: RunState
  readonly processes: Processes
  readonly actions: Victims
  readonly add: () => void
  /** Lets time pass until the given instant, or until the simulation is over. */
  readonly advance: (until: number) => void
  readonly hasEnded: () => boolean
  readonly outcome: () => Outcome
}

export const begin = <E>(setup: Setup<E>, lua: LuaVm): Running => {
  const state = new RunState(setup, lua)
  const { server, slots, world } = state
  const processes = new Processes(state)
  const actions = faultActions(state, processes)
  const checks = setup.checkers.map((checker) => checker.start(viewOf(state, checker.name)))
  for (const { onEvent } of checks) if (onEvent !== undefined) state.listeners.push(onEvent)
  listen(state)

  const calm = { requestDelay: setup.network.requestDelay, replyDelay: setup.network.replyDelay }
  const add = () => {
    server.link(`c${slots.length + 1}`).faults = { ...calm, ...only(state.faults, linkFaults) }
    processes.add(slots.length)
  }
  for (let index = 0; index < setup.clients; index++) add()
  const { explored } = setup
  if (explored !== undefined) install(state, processes, explored.choices, explored.deviations)
  state.enter("safety")
  for (const slot of slots) {
    state.after(slot.index * 0.1, () => {
      if (slot.generation === 1 && slot.process.state === "running") processes.start(slot)
    })
  }
  startFaults(state.faults, state.prng, actions, () => state.phase === "safety")

  const steps = phases(state, processes, checks)
  let hasEnded = steps.next().done === true
  return {
    state,
    processes,
    actions,
    add: () => {
      add()
      processes.start(slots.at(-1)!)
    },
    advance: (until) => {
      if (!hasEnded) hasEnded = steps.next(until).done === true
    },
    hasEnded: () => hasEnded,
    outcome: () => {
      const { commands, enabled, events, violations } = state
      return { enabled, violations, events, commands, virtualMillis: world.now() }
    }
  }
}

export const run = <E>(setup: Setup<E>, lua: LuaVm): Outcome => {
  const running = begin(setup, lua)
  running.advance(Infinity)
  return running.outcome()
}

/** Runs the phases: faults, calm, closing. Each call to `next` passes the instant at which time must stop. */
function* phases(
  state: RunState,
  processes: Processes,
  checks: ReadonlyArray<ReturnType<Checker["start"]>>
): Generator<void, void, number> {
  const { server, setup, slots, violations, world } = state
  let limit = -Infinity

  /** Lets time pass. Returns false if a checker has found a violation. */
  const pass = function*(
    millis: number,
    done: () => boolean = () => false,
    step = 250
  ): Generator<void, boolean, number> {
    const until = world.now() + millis
    try {
      while (world.now() < until && violations.length === 0 && !done()) {
        const end = Math.min(until, world.now() + step)
        while (world.now() < end) {
          while (limit <= world.now()) {
            limit = yield
            world.settle()
          }
          world.runUntil(Math.min(end, limit))
        }
      }
    } catch (error) {
      if (!(error instanceof Restless)) throw error
      state.violated("program", error.message)
    }
    return violations.length === 0
  }
  const heal = () => {
    if (setup.explored !== undefined) setup.explored.choices.isOpen = false
    state.enter("liveness")
    server.engine.setErrorState(undefined)
    if (state.serverFaults > 0) state.end(undefined)
    for (const slot of slots) {
      const link = server.link(slot.name)
      link.faults = { requestDelay: setup.network.requestDelay, replyDelay: setup.network.replyDelay }
      if (link.isDeaf) {
        link.isDeaf = false
        link.reset()
      }
      for (const direction of ["requests", "replies"] as const) while (link.isHeld(direction)) link.release(direction)
      // For some time after this instant, checkers excuse the client
      if (slot.faults > 0) slot.disturbedAt = world.now()
      slot.faults = 0
      slot.process.calm()
      state.resume(slot)
    }
    for (const slot of slots) if (slot.process.state === "dead") processes.restart(slot, slot.generation)
  }

  world.settle()
  const { explored, isOver } = setup
  const view = viewOf(state, "program")
  const exploration = explored === undefined || isOver === undefined
    ? pass(setup.duration)
    : pass(setup.duration, () => explored.choices.isOpen && isOver(view), 50)
  if (!(yield* exploration)) return
  heal()
  if (!(yield* pass(setup.calm))) return
  if (!(yield* pass(setup.liveness, () => checks.every(({ isConverged }) => isConverged?.() ?? true)))) return
  for (const { onConverged } of checks) onConverged?.()
  state.enter("closing")
  for (const { fiber } of slots) fiber?.interruptUnsafe()
  if (!(yield* pass(setup.closing))) return
  state.enter("closed")
  for (const { onClosed } of checks) onClosed?.()
}

/** Records executed commands, expired keys and connection events in the history. */
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
