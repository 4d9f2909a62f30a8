/** Injects faults into the processes, links and server of a simulation. */
import type { Direction } from "../client/link.ts"
import type { Victims } from "./faults.ts"
import type { ProcessSlot } from "./process.ts"
import type { Processes } from "./processes.ts"
import type { RunState } from "./runState.ts"

/** The messages that a link holds back. */
type Hindrance = Direction | "messages"

export const faultActions = (state: RunState, processes: Processes): Victims => {
  const { server, slots, world } = state
  const hindered: Array<{ readonly slot: ProcessSlot; readonly what: Hindrance }> = []
  const begin = (slot: ProcessSlot, what: Hindrance) => {
    state.begin(slot)
    hindered.push({ slot, what })
  }
  const end = (slot: ProcessSlot, what: Hindrance) => {
    hindered.splice(hindered.findIndex((one) => one.slot === slot && one.what === what), 1)
    state.end(slot)
  }
  const lose = (name: string, text: string) => {
    state.fault(name, "server", text)
    state.lossAt = state.serverDisturbedAt = world.now()
    state.emitOwners()
  }
  const step = (millis: number) => {
    state.serverStepAt = state.serverDisturbedAt = world.now()
    if (millis > 0) state.serverForwardAt = world.now()
    server.stepClock(millis)
  }
  return {
    clients: state.setup.clients,
    after: (millis, then) => state.after(millis, then),
    hold: (index, direction, name) => {
      const slot = slots[index]!
      state.fault(name, slot.name, direction)
      begin(slot, direction)
      server.link(slot.name).hold(direction)
    },
    release: (index, direction, name) => {
      const slot = slots[index]!
      state.fault(name, slot.name, `${direction} over`)
      end(slot, direction)
      server.link(slot.name).release(direction)
    },
    deafen: (index, isDeaf) => {
      const slot = slots[index]!
      const link = server.link(slot.name)
      if (link.isDeaf === isDeaf) return
      state.fault("deafen", slot.name, isDeaf ? "" : "over")
      link.isDeaf = isDeaf
      if (isDeaf) return begin(slot, "messages")
      end(slot, "messages")
      // Break the connections: the client then subscribes again on another node
      link.reset()
    },
    pause: (index, suspend) => {
      const slot = slots[index]!
      if (slot.process.state === "running") state.fault(suspend ? "suspend" : "pause", slot.name)
      state.begin(slot)
      slot.process.pause(suspend)
    },
    resume: (index) => {
      const slot = slots[index]!
      state.end(slot)
      // Resume only when all overlapping pauses are over
      if (slot.process.state !== "paused" || slot.faults > hindered.filter((one) => one.slot === slot).length) return
      state.fault("resume", slot.name)
      state.resume(slot)
    },
    kill: (index, restartAfter) => {
      const slot = slots[index]!
      if (slot.process.state === "dead") return
      state.fault("kill", slot.name)
      slot.disturbedAt = world.now()
      server.link(slot.name).cut()
      slot.process.kill()
      slot.fiber = undefined
      if (restartAfter === Infinity) return
      const { generation } = slot
      state.after(restartAfter, () => processes.restart(slot, generation))
    },
    stepWall: (index, millis) => {
      const slot = slots[index]!
      state.fault("clockStep", slot.name, `${millis} ms`)
      slot.disturbedAt = slot.steppedAt = world.now()
      slot.process.stepWall(millis)
    },
    stepServer: (millis) => {
      state.fault("serverClockStep", "server", `${millis} ms`)
      step(millis)
      state.emitOwners()
    },
    errorState: (errorState) => {
      if ((errorState === undefined) === (state.serverFaults === 0)) return
      state.fault("errorState", "server", errorState ?? "over")
      if (errorState === undefined) state.end(undefined)
      else state.begin(undefined)
      server.engine.setErrorState(errorState)
    },
    restart: (keepData) => {
      if (!keepData) state.lossAt = world.now()
      server.restart(keepData)
      if (!keepData) return lose("restart", "without data")
      state.fault("restart", "server")
      state.serverDisturbedAt = world.now()
    },
    failover: (count, clockStep) => {
      state.lossAt = world.now()
      const lost = server.failover(count)
      if (clockStep !== 0) step(clockStep)
      lose("failover", `${lost} writes lost, clock ${clockStep} ms`)
    },
    flushScripts: () => {
      state.fault("flushScripts", "server")
      server.engine.flushScripts()
    },
    dropConnections: (index) => {
      const name = index === undefined ? undefined : slots[index]!.name
      state.fault("dropConnections", name ?? "server")
      server.dropConnections(name)
    },
    evict: (draw) => {
      const keys = server.keys()
      if (keys.length === 0) return
      const { key } = keys[Math.floor(draw() * keys.length)]!
      // Clients that are blocked on the key are unblocked immediately
      state.lossAt = world.now()
      server.run(() => server.engine.evict(0, key))
      lose("evict", key)
    }
  }
}
