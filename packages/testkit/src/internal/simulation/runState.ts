/** One simulation's state: its world, server and processes, the events so far, and what faults currently affect. */
import type { LuaVm } from "@effect-simba/fake-redis/Engine"
import { FakeServer, type TraceEntry } from "../client/server.ts"
import type { Choices } from "./choices.ts"
import { type FaultName, type Faults, only, swarm } from "./faults.ts"
import type { Event, Phase } from "./history.ts"
import { OwnershipTracker } from "./ownershipTracker.ts"
import { Prng } from "./prng.ts"
import type { ProcessSlot } from "./process.ts"
import type { Setup, Violation } from "./setup.ts"
import { World } from "./world.ts"

/** The time of an event that has not happened yet. */
export const never = -Infinity

export class RunState {
  readonly setup: Setup<unknown>
  readonly prng: Prng
  readonly enabled: ReadonlyArray<FaultName>
  readonly faults: Faults
  readonly world = new World()
  readonly server: FakeServer
  readonly owners: OwnershipTracker
  readonly slots: Array<ProcessSlot> = []
  readonly events: Array<Event> = []
  readonly violations: Array<Violation> = []
  readonly listeners: Array<(event: Event) => void> = []
  phase: Phase = "safety"
  commands = 0
  /** When a fault last affected the server. */
  serverDisturbedAt = never
  /** The number of faults that currently affect the server. */
  serverFaults = 0
  /** When the server last lost data. */
  lossAt = never
  /** When the server's wall clock was last stepped. */
  serverStepAt = never
  /** When the server's wall clock was last stepped forward, or a failover promoted a replica whose clock was ahead. */
  serverForwardAt = never

  constructor(setup: Setup<unknown>, lua: LuaVm) {
    this.setup = setup
    this.prng = new Prng(setup.seed)
    this.enabled = setup.enabled ?? swarm(setup.faults, this.prng)
    this.faults = only(setup.faults, this.enabled)
    this.server = new FakeServer({
      clock: this.world.clock,
      timers: this.world,
      prng: this.prng.stream("server"),
      lua,
      epoch: 1_750_000_000_000,
      expiryDelay: [0, 100],
      undoDepth: this.faults.failover === undefined
        ? setup.undoDepth ?? (setup.explored?.deviations.failovers === true ? 1 : 0)
        : Math.ceil(this.faults.failover.lose[1]),
      traceLimit: 0
    })
    this.owners = new OwnershipTracker(setup.lock, this.server, this.world.now)
  }

  get choices(): Choices | undefined {
    return this.setup.explored?.choices
  }

  get isEnding(): boolean {
    return this.phase === "closing" || this.phase === "closed"
  }

  after(millis: number, then: () => void): void {
    this.world.at(this.world.now() + millis, then)
  }

  slotOf(client: string): ProcessSlot | undefined {
    return this.slots.find(({ name }) => name === client)
  }

  emit(event: Event): void {
    this.events.push(event)
    for (const listener of this.listeners) listener(event)
  }

  emitOwners(cause?: TraceEntry | "expiry"): void {
    for (const event of this.owners.changesAfter(cause)) this.emit(event)
  }

  fault(name: string, target: string, text = ""): void {
    this.emit({ _tag: "Fault", at: this.world.now(), fault: name, target, text })
  }

  violated(checker: string, message: string): void {
    this.violations.push({ checker, at: this.world.now(), message })
  }

  enter(phase: Phase): void {
    this.phase = phase
    this.emit({ _tag: "Phase", at: this.world.now(), phase })
  }

  /** Records the start of a fault that affects a process or, if none is given, the server. */
  begin(slot: ProcessSlot | undefined): void {
    if (slot === undefined) this.serverFaults++
    else slot.faults++
  }

  end(slot: ProcessSlot | undefined): void {
    if (slot === undefined) {
      this.serverFaults--
      this.serverDisturbedAt = this.world.now()
    } else {
      slot.faults--
      slot.disturbedAt = this.world.now()
    }
  }

  /** Resumes a process. If the pause stopped its timers, a hanging command takes that much longer. */
  resume(slot: ProcessSlot): void {
    const { slept } = slot.process
    if (slot.lateUntil > this.world.now() - slept) slot.lateUntil += slept
    slot.process.resume()
  }
}
