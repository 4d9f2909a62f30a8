/** Starts a simulation's processes, and restarts those that were killed or failed. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as fakeClient from "../client/client.ts"
import { Process, type ProcessSlot } from "./process.ts"
import { drawPace, free } from "./processor.ts"
import { never, type RunState } from "./runState.ts"
import type { Client, Outside } from "./setup.ts"

/** An event-loop turn that takes at least this long counts as a fault in its process. */
const longTurnMillis = 20

export class Processes {
  private readonly state: RunState
  private readonly outside: Outside
  private readonly waiting: Array<() => void> = []
  /** Whether all processes have been ready once, which starts the exploration. */
  private haveStarted = false
  /** Called when all processes are ready, before they continue. */
  onReady: (() => void) | undefined
  /** Called when something arrives at a process. */
  onArrival: ((slot: ProcessSlot) => void) | undefined
  /** Returns the delay for a process's runnable fiber; see `Processor.setAside`. */
  setAside: ((slot: ProcessSlot) => number) | undefined

  constructor(state: RunState) {
    this.state = state
    this.outside = {
      state: new Map(),
      note: (kind, fields = {}) =>
        state.emit({ _tag: "Note", at: state.world.now(), client: "outside", generation: 1, kind, fields })
    }
  }

  add(index: number): void {
    const name = `c${index + 1}`
    this.state.slots.push({
      name,
      index,
      generation: 1,
      process: this.create(name, 1),
      fiber: undefined,
      disturbedAt: never,
      lateUntil: never,
      steppedAt: never,
      faults: 0
    })
  }

  start(slot: ProcessSlot): void {
    const { setup } = this.state
    const { name, process } = slot
    process.onArrival = () => this.onArrival?.(slot)
    if (process.processor !== undefined && this.setAside !== undefined) {
      process.processor.setAside = () => this.setAside!(slot)
    }
    const client = this.clientOf(slot)
    const context = process.context.pipe(
      Context.add(Logger.CurrentLoggers, new Set([this.logger(name)])),
      Context.add(References.MinimumLogLevel, "Warn")
    )
    const redis = Layer.effectContext(fakeClient.make(this.state.server, {
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
      if (this.state.isEnding || Exit.isSuccess(exit)) return
      if (Cause.hasDies(exit.cause)) return this.state.violated("program", `${name} died: ${Cause.pretty(exit.cause)}`)
      // Restart a failed process, as an operator would
      client.note("crashed", { error: String(Cause.squash(exit.cause)) })
      slot.process.kill()
      const { generation } = slot
      this.state.after(1000, () => this.restart(slot, generation))
    })
  }

  /** Starts a client's next process, unless it has already started. */
  restart(slot: ProcessSlot, generation: number): void {
    if (slot.generation !== generation || this.state.isEnding) return
    slot.generation++
    slot.process = this.create(slot.name, slot.generation)
    this.start(slot)
  }

  private create(name: string, generation: number): Process {
    const { faults, prng, world } = this.state
    const own = prng.stream(`${name} ${generation}`)
    const clocks = own.stream("clocks")
    const spread = (size: number) => size * (2 * clocks.next() - 1)
    const process = new Process({
      world,
      prng: own,
      offset: Math.round(spread(faults.clockOffset ?? 0)),
      rate: 1 + spread(faults.clockRate ?? 0),
      pace: this.state.choices !== undefined
        ? free
        : faults.processor === undefined
        ? undefined
        : this.state.phase === "safety"
        ? drawPace(faults.processor, own.stream("processor"))
        : free
    })
    if (process.processor !== undefined) {
      process.processor.onTurn = (millis) => {
        const slot = this.state.slotOf(name)
        if (millis >= longTurnMillis && slot !== undefined) slot.disturbedAt = world.now()
      }
    }
    return process
  }

  private clientOf({ generation, index, name, process }: ProcessSlot): Client {
    const { state } = this
    return {
      name,
      index,
      generation,
      random: state.prng.stream(`${name} ${generation} choices`).next,
      compute: process.compute,
      ready: this.state.choices === undefined ? Effect.void : this.ready,
      interruptible: (name, effect) =>
        Effect.flatMap(Effect.forkChild(effect, { startImmediately: true }), (fiber) => {
          process.interruptible.set(name, () => fiber.interruptUnsafe())
          return Effect.onInterrupt(Fiber.await(fiber), () => Fiber.interrupt(fiber)).pipe(
            Effect.ensuring(Effect.sync(() => process.interruptible.delete(name))),
            Effect.flatMap((exit) =>
              Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? Effect.void : Effect.asVoid(exit)
            )
          )
        }),
      phase: () => state.phase,
      note: (kind, fields = {}) => {
        if (process.state === "dead") return
        state.emit({ _tag: "Note", at: state.world.now(), client: name, generation, kind, fields })
      },
      outside: (delay, act) =>
        Effect.callback((resume) => {
          process.acts++
          state.after(delay, () => {
            const result = act(this.outside)
            state.after(delay, () => process.deliver(() => resume(Effect.succeed(result))))
          })
        })
    }
  }

  /** Waits until all processes are ready, because an exploration must start at the same point for all of them. */
  private readonly ready: Effect.Effect<void> = Effect.callback((resume) => {
    const { choices, setup } = this.state
    this.waiting.push(() => resume(Effect.void))
    const isFirst = !this.haveStarted && this.waiting.length >= setup.clients
    if (isFirst) {
      this.haveStarted = choices!.isOpen = true
      this.onReady?.()
    }
    if (this.haveStarted) {
      for (const go of this.waiting.splice(0)) go()
    }
  })

  private logger(client: string) {
    return Logger.make((options) => {
      this.state.emit({
        _tag: "Log",
        at: this.state.world.now(),
        client,
        level: options.logLevel,
        text: [options.message].flat().map(String).join(" ")
      })
    })
  }
}
