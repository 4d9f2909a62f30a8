/** One simulation, from start to end, synchronously. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { streamView } from "../../streams/internal/streamView.ts"
import { Locks } from "../checkers/ownershipTracker.ts"
import * as fakeClient from "../client/client.ts"
import { FakeServer } from "../client/server.ts"
import type { LuaVm } from "../redis/lua/vm.ts"
import { linkFaults, only, start as startNemesis, swarm } from "./faults.ts"
import type { Event, Phase } from "./history.ts"
import { Prng } from "./prng.ts"
import { Process } from "./process.ts"
import type { Client, Outcome, Outside, Setup, View, Violation } from "./setup.ts"
import { World } from "./world.ts"

interface Slot {
  readonly name: string
  generation: number
  process: Process
  fiber: Fiber.Fiber<void, unknown> | undefined
  disturbed: number
  stepped: number
  ongoing: number
}

const forever = -Infinity

export const run = <E>(setup: Setup<E>, lua: LuaVm): Outcome => {
  const prng = new Prng(setup.seed)
  const enabled = setup.enabled ?? swarm(setup.faults, prng)
  const faults = only(setup.faults, enabled)
  const world = new World()
  const server = new FakeServer({
    clock: world.clock,
    timers: world,
    prng: prng.stream("server"),
    lua,
    epoch: 1_750_000_000_000,
    expiryDelay: [0, 100],
    undoDepth: faults.failOver === undefined ? 0 : Math.ceil(faults.failOver.lose[1]),
    traceLimit: 0
  })
  const locks = new Locks(setup.lock, server, world.now)
  const events: Array<Event> = []
  const violations: Array<Violation> = []
  let phase: Phase = "safety"
  let commands = 0
  let serverDisturbed = forever
  let serverOngoing = 0
  let lossAt = forever
  let stepAt = forever
  const slots: Array<Slot> = []

  const emit = (event: Event) => {
    events.push(event)
    for (const { onEvent } of checks) onEvent?.(event)
  }
  const violated = (checker: string, message: string) => {
    violations.push({ checker, at: world.now(), message })
  }
  const emitOwners = (command: Event & { readonly _tag: "Command" } | undefined) => {
    for (const event of locks.look(command?.command)) emit(event)
  }
  const fault = (name: string, target: string, text = "") =>
    emit({ _tag: "Fault", at: world.now(), fault: name, target, text })

  const view = (checker: string): View => ({
    now: world.now,
    phase: () => phase,
    clients: setup.clients,
    names: () => slots.map(({ name }) => name),
    lock: setup.lock,
    owner: (resource) => locks.owner(resource),
    serverNow: () => server.micros() / 1000,
    subscribers: (channel) => server.subscribers(channel),
    departures: () => server.departures,
    subscriptions: () => server.engine.subscriptions(),
    connections: () => server.openConnections(),
    fibers: () => slots.reduce((sum, { process }) => sum + (process.state === "dead" ? 0 : process.openFibers), 0),
    timers: () => slots.reduce((sum, { process }) => sum + (process.state === "dead" ? 0 : process.openTimers), 0),
    read: (key) => {
      const dump = server.engine.dump(0, key)
      return dump?.type === "string" ? dump.value : undefined
    },
    hash: (key) => {
      const dump = server.engine.dump(0, key)
      return new Map(dump?.type === "hash" ? dump.value : [])
    },
    stream: (key) => streamView(server, key),
    keys: () => server.keys(),
    disturbedAt: (client) => {
      const slot = slots.find(({ name }) => name === client)
      if (serverOngoing > 0 || (slot !== undefined && slot.ongoing > 0)) return world.now()
      return Math.max(serverDisturbed, slot?.disturbed ?? forever)
    },
    lossAt: () => lossAt,
    serverStepAt: () => stepAt,
    clockStepAt: (client) => slots.find(({ name }) => name === client)?.stepped ?? forever,
    isRunning: (client) => slots.some(({ name, process }) => name === client && process.state === "running"),
    resumedAt: (client) => slots.find(({ name }) => name === client)?.process.resumedAt ?? forever,
    wasSuspended: (client) => slots.find(({ name }) => name === client)?.process.wasSuspended ?? false,
    every: (millis, check) => {
      const again = () =>
        world.at(world.now() + millis, () => {
          if (phase === "closing" || phase === "closed") return
          check()
          again()
        })
      again()
    },
    violated: (message) => violated(checker, message)
  })
  const checks = setup.checkers.map((checker) => checker.start(view(checker.name)))

  server.listeners.add((command) => {
    const at = world.now()
    if (command === undefined) {
      emit({ _tag: "Expiry", at })
      return emitOwners(undefined)
    }
    commands++
    const event: Event = { _tag: "Command", at, command }
    emit(event)
    emitOwners(event)
  })
  server.onLinkEvent = (event) => {
    const slot = slots.find(({ name }) => name === event.link)!
    slot.disturbed = world.now()
    fault(event.what, event.link, event.args?.slice(0, 1).join(" "))
  }

  const logger = (slot: Slot) =>
    Logger.make((options) => {
      emit({
        _tag: "Log",
        at: world.now(),
        client: slot.name,
        level: options.logLevel,
        text: [options.message].flat().map(String).join(" ")
      })
    })

  const calm = { requestDelay: setup.network.requestDelay, replyDelay: setup.network.replyDelay }
  const disturbed = {
    ...calm,
    ...only(faults, linkFaults)
  }

  const newProcess = (name: string, generation: number) => {
    const own = prng.stream(`${name} ${generation}`)
    const clocks = own.stream("clocks")
    const spread = (size: number) => size * (2 * clocks.next() - 1)
    return new Process({
      world,
      prng: own,
      offset: Math.round(spread(faults.clockOffset ?? 0)),
      rate: 1 + spread(faults.clockRate ?? 0)
    })
  }

  const outside: Outside = {
    state: new Map(),
    note: (kind, fields = {}) => emit({ _tag: "Note", at: world.now(), client: "outside", generation: 1, kind, fields })
  }

  const boot = (slot: Slot, index: number) => {
    const { generation, name, process } = slot
    const client: Client = {
      name,
      index,
      generation,
      random: prng.stream(`${name} ${generation} choices`).next,
      phase: () => phase,
      note: (kind, fields = {}) => {
        if (process.state !== "dead") emit({ _tag: "Note", at: world.now(), client: name, generation, kind, fields })
      },
      outside: (delay, act) =>
        Effect.callback((resume) => {
          after(delay, () => {
            const answer = act(outside)
            after(delay, () => process.deliver(() => resume(Effect.succeed(answer))))
          })
        })
    }
    const context = process.context.pipe(
      Context.add(Logger.CurrentLoggers, new Set([logger(slot)])),
      Context.add(References.MinimumLogLevel, "Warn")
    )
    const redis = Layer.effectContext(fakeClient.make(server, {
      name,
      db: 0,
      protocol: 3,
      commandTimeout: Duration.seconds(1),
      connectTimeout: Duration.seconds(2)
    }))
    const fiber = Effect.runForkWith(context)(Effect.scoped(setup.program(client)).pipe(Effect.provide(redis)))
    slot.fiber = fiber
    fiber.addObserver((exit) => {
      if (slot.fiber !== fiber) return
      slot.fiber = undefined
      if (phase === "closing" || phase === "closed" || Exit.isSuccess(exit)) return
      if (Cause.hasDies(exit.cause)) return violated("program", `${name} died: ${Cause.pretty(exit.cause)}`)
      // A process that gives up is started again, as operators do
      client.note("crashed", { error: String(Cause.squash(exit.cause)) })
      slot.process.kill()
      after(1000, () => reboot(slot, index, generation))
    })
  }

  const reboot = (slot: Slot, index: number, generation: number) => {
    if (slot.generation !== generation || phase === "closing" || phase === "closed") return
    slot.generation++
    slot.process = newProcess(slot.name, slot.generation)
    boot(slot, index)
  }

  const after = (millis: number, then: () => void) => world.at(world.now() + millis, then)
  const begin = (target: Slot | undefined) => target === undefined ? serverOngoing++ : target.ongoing++
  const end = (target: Slot | undefined) => {
    if (target === undefined) {
      serverOngoing--
      serverDisturbed = world.now()
    } else {
      target.ongoing--
      target.disturbed = world.now()
    }
  }
  const loss = (name: string, text = "") => {
    fault(name, "server", text)
    lossAt = serverDisturbed = world.now()
    emitOwners(undefined)
  }

  for (let i = 0; i < setup.clients; i++) {
    const name = `c${i + 1}`
    server.link(name).faults = disturbed
    slots.push({
      name,
      generation: 1,
      process: newProcess(name, 1),
      fiber: undefined,
      disturbed: forever,
      stepped: forever,
      ongoing: 0
    })
  }
  emit({ _tag: "Phase", at: 0, phase })
  slots.forEach((slot, index) =>
    after(index * 0.1, () => {
      if (slot.generation === 1 && slot.process.state === "running") boot(slot, index)
    })
  )

  const heldBack: Array<{ readonly slot: Slot; readonly direction: "requests" | "replies" }> = []
  startNemesis(faults, prng, {
    clients: setup.clients,
    after: (millis, then) => void after(millis, then),
    hold: (index, direction, name) => {
      const slot = slots[index]!
      fault(name, slot.name, direction)
      begin(slot)
      heldBack.push({ slot, direction })
      server.link(slot.name).hold(direction)
    },
    release: (index, direction, name) => {
      const slot = slots[index]!
      fault(name, slot.name, `${direction} over`)
      heldBack.splice(heldBack.findIndex((held) => held.slot === slot && held.direction === direction), 1)
      end(slot)
      server.link(slot.name).release(direction)
    },
    pause: (index, suspend) => {
      const slot = slots[index]!
      if (slot.process.state === "running") fault(suspend ? "suspend" : "pause", slot.name)
      begin(slot)
      slot.process.pause(suspend)
    },
    resume: (index) => {
      const slot = slots[index]!
      end(slot)
      // Two pauses that overlap last until both are over
      if (slot.process.state !== "paused" || slot.ongoing > heldBack.filter((held) => held.slot === slot).length) return
      fault("resume", slot.name)
      slot.process.resume()
    },
    kill: (index, restartAfter) => {
      const slot = slots[index]!
      if (slot.process.state === "dead") return
      fault("kill", slot.name)
      slot.disturbed = world.now()
      server.link(slot.name).cut()
      slot.process.kill()
      slot.fiber = undefined
      const { generation } = slot
      after(restartAfter, () => reboot(slot, index, generation))
    },
    stepWall: (index, millis) => {
      const slot = slots[index]!
      fault("clockStep", slot.name, `${millis} ms`)
      slot.disturbed = slot.stepped = world.now()
      slot.process.stepWall(millis)
    },
    stepServer: (millis) => {
      fault("serverClockStep", "server", `${millis} ms`)
      stepAt = serverDisturbed = world.now()
      server.stepClock(millis)
      emitOwners(undefined)
    },
    errorState: (state) => {
      if (state !== undefined && serverOngoing > 0) return
      if (state === undefined && serverOngoing === 0) return
      fault("errorState", "server", state ?? "over")
      if (state === undefined) end(undefined)
      else begin(undefined)
      server.engine.setErrorState(state)
    },
    restart: (keepData) => {
      if (!keepData) lossAt = world.now()
      server.restart(keepData)
      if (keepData) {
        fault("restart", "server")
        serverDisturbed = world.now()
      } else loss("restart", "without data")
    },
    failOver: (lose) => {
      lossAt = world.now()
      const lost = server.failOver(lose)
      loss("failOver", `${lost} writes lost`)
    },
    flushScripts: () => {
      fault("flushScripts", "server")
      server.engine.flushScripts()
    },
    dropConnections: (index) => {
      const name = index === undefined ? undefined : slots[index]!.name
      fault("dropConnections", name ?? "server")
      server.dropConnections(name)
    },
    evict: (draw) => {
      const keys = server.keys()
      if (keys.length === 0) return
      const { key } = keys[Math.floor(draw() * keys.length)]!
      // Whoever blocks on it hears of it at once
      lossAt = world.now()
      server.run(() => server.engine.evict(0, key))
      loss("evict", key)
    }
  }, () => phase === "safety")

  const pass = (millis: number, done: () => boolean = () => false) => {
    const until = world.now() + millis
    while (world.now() < until && violations.length === 0 && !done()) world.runUntil(Math.min(until, world.now() + 250))
    return violations.length === 0
  }
  const converged = () => checks.every(({ isConverged }) => isConverged?.() ?? true)
  const enter = (next: Phase) => {
    phase = next
    emit({ _tag: "Phase", at: world.now(), phase })
  }
  const heal = () => {
    enter("liveness")
    server.engine.setErrorState(undefined)
    if (serverOngoing > 0) end(undefined)
    for (const slot of slots) {
      const link = server.link(slot.name)
      link.faults = calm
      for (const direction of ["requests", "replies"] as const) while (link.isHeld(direction)) link.release(direction)
      if (slot.ongoing > 0) slot.disturbed = world.now()
      slot.ongoing = 0
      slot.process.resume()
    }
    slots.forEach((slot, index) => slot.process.state === "dead" && reboot(slot, index, slot.generation))
  }
  const close = () => {
    enter("closing")
    for (const { fiber } of slots) fiber?.interruptUnsafe()
  }

  world.settle()
  if (pass(setup.duration)) {
    heal()
    if (pass(setup.calm) && pass(setup.liveness, converged)) {
      for (const { onConverged } of checks) onConverged?.()
      close()
      if (pass(setup.closing)) {
        enter("closed")
        for (const { onClosed } of checks) onClosed?.()
      }
    }
  }
  return { enabled, violations, events, commands, virtualMillis: world.now() }
}
