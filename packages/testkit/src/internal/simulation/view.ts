/** Builds the view of a simulation for checkers. */
import { follow, streamView } from "../../streams/internal/streamView.ts"
import type { Process } from "./process.ts"
import { never, type RunState } from "./runState.ts"
import type { View } from "./setup.ts"

export const viewOf = (state: RunState, checker: string): View => {
  const { owners, server, setup, slots, world } = state
  const sum = (count: (process: Process) => number) =>
    slots.reduce((total, { process }) => total + (process.state === "dead" ? 0 : count(process)), 0)
  return {
    now: world.now,
    phase: () => state.phase,
    clients: setup.clients,
    names: () => slots.map(({ name }) => name),
    lock: setup.lock,
    owner: (resource) => owners.owner(resource),
    lastOwner: (resource) => owners.lastOwner(resource),
    serverNow: () => server.micros() / 1000,
    subscribers: (channel) => server.subscribers(channel),
    departures: () => server.departures,
    subscriptions: () => server.engine.subscriptions(),
    connections: () => server.openConnections(),
    fibers: () => sum(({ openFibers }) => openFibers),
    timers: () => sum(({ openTimers }) => openTimers),
    read: (key) => {
      const dump = server.engine.dump(0, key)
      return dump?.type === "string" ? dump.value : undefined
    },
    hash: (key) => {
      const dump = server.engine.dump(0, key)
      return new Map(dump?.type === "hash" ? dump.value : [])
    },
    field: (key, field) => server.engine.field(0, key, field),
    stream: (key) => streamView(server, key),
    follow: (key) => follow(server, key),
    expiresAt: (key) => {
      const at = server.engine.expiresAt(0, key)
      return at !== undefined && Math.floor(server.micros() / 1000) <= at ? at : undefined
    },
    keys: () => server.keys(),
    disturbedAt: (client) => {
      const slot = client === undefined ? undefined : state.slotOf(client)
      if (state.serverFaults > 0 || (slot !== undefined && slot.faults > 0)) return world.now()
      const late = Math.min(world.now(), slot?.lateUntil ?? never)
      return Math.max(state.serverDisturbedAt, slot?.disturbedAt ?? never, late)
    },
    lossAt: () => state.lossAt,
    serverStepAt: () => state.serverStepAt,
    serverForwardAt: () => state.serverForwardAt,
    clockStepAt: (client) => state.slotOf(client)?.steppedAt ?? never,
    isRunning: (client) => state.slotOf(client)?.process.state === "running",
    lateness: (client) => state.slotOf(client)?.process.processor?.lateness ?? 0,
    isOrdered: (client) => state.slotOf(client)?.process.processor?.pace.isOrdered ?? true,
    resumedAt: (client) => state.slotOf(client)?.process.resumedAt ?? never,
    sleptUntil: (client) => state.slotOf(client)?.process.sleptUntil ?? never,
    wasSuspended: (client) => state.slotOf(client)?.process.wasSuspended ?? false,
    every: (millis, check) => {
      const next = () =>
        state.after(millis, () => {
          if (state.isEnding) return
          check()
          next()
        })
      next()
    },
    violated: (message) => state.violated(checker, message)
  }
}
