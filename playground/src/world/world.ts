/** A scenario in virtual time: the simulation, the script, and the reader's actions. */
import { Simulation } from "@effect-simba/testkit"
import { Effect } from "effect"
import { History } from "../view/history.ts"
import type { Act } from "./acts.ts"
import { Desk } from "./desk.ts"
import * as mutexFleet from "./mutexFleet.ts"
import type { Scenario } from "./scenarios.ts"
import * as streamFleet from "./streamFleet.ts"

export const minProcesses = 2
export const maxProcesses = 12

const options = (scenario: Scenario, seed: string, clients: number, desk: Desk) => {
  const base = { seed, clients }
  return scenario.fleet._tag === "Mutex"
    ? mutexFleet.options(desk, scenario.fleet.habits, base)
    : Effect.succeed(streamFleet.options(desk, scenario.fleet.first, base))
}

export interface Part {
  readonly name: string
  readonly state: "running" | "paused" | "dead"
  readonly isCut: boolean
  readonly clockStep: number
  /** Milliseconds until the deadline of the process's lease, by the process's own clock. */
  readonly timeLeft: number | undefined
  readonly token: number | undefined
  /** The ordinal of the process's token, from 1, because tokens are long numbers. */
  readonly ordinal: number | undefined
  /** The process's place in the queue, from 1. Undefined for a process that is not waiting. */
  readonly place: number | undefined
  /** The number of data streams that the process owns. */
  readonly streams: number
  readonly activity: "idle" | "waiting" | "leading" | "lost"
  readonly isSimba: boolean
  readonly delay: number
}

export class World {
  readonly scenario: Scenario
  readonly seed: string
  readonly history: History
  /** The reader's actions, for the URL. */
  readonly acts: Array<Act>
  /** The initial number of processes, or undefined for the scenario's default. */
  readonly clients: number | undefined
  readonly desk: Desk
  readonly live: Simulation.Live
  private readonly script: Array<Act>
  private readonly delays = new Map<string, number>()
  private eventsRead = 0

  private constructor(
    scenario: Scenario,
    seed: string,
    acts: ReadonlyArray<Act>,
    clients: number | undefined,
    desk: Desk,
    live: Simulation.Live,
    lock: Simulation.LockModel
  ) {
    this.scenario = scenario
    this.seed = seed
    this.acts = [...acts]
    this.clients = clients
    this.desk = desk
    this.live = live
    desk.now = live.now
    this.history = new History(lock)
    this.script = [...scenario.script, ...acts].sort((a, b) => a.at - b.at)
    for (const { name } of live.processes()) this.history.lane(name)
    this.read()
  }

  static async make(
    scenario: Scenario,
    seed: string,
    acts: ReadonlyArray<Act> = [],
    clients?: number
  ): Promise<World> {
    const desk = new Desk()
    const count = Math.min(maxProcesses, Math.max(minProcesses, clients ?? scenario.clients))
    const made = await Effect.runPromise(options(scenario, seed, count, desk)) as Simulation.Options<unknown>
    const live = await Effect.runPromise(Simulation.begin({ ...made, undoDepth: 8 }))
    return new World(scenario, seed, acts, clients, desk, live, made.lock)
  }

  get now(): number {
    return this.live.now()
  }

  /** Whether the scenario has played to its end. */
  get isOver(): boolean {
    return this.now >= this.scenario.duration
  }

  /** Advances virtual time to `until`, and performs the actions that become due. */
  advance(until: number): void {
    for (;;) {
      const next = this.script[0]
      if (next === undefined || next.at > until) break
      this.script.shift()
      this.live.advance(next.at)
      this.do(next)
    }
    this.live.advance(until)
    this.read()
  }

  /** Performs one of the reader's actions at the current instant. */
  perform(act: Omit<Act, "at">): void {
    const done = { ...act, at: this.now }
    this.acts.push(done)
    this.do(done)
    this.read()
  }

  /**
   * Performs an action and lets the fleet react at the same instant. This way, opening the URL later produces the same
   * order.
   */
  private do(act: Act): void {
    this.act(act)
    this.live.advance(this.live.now())
  }

  private act({ target, value, verb }: Act): void {
    const { desk, live } = this
    const isServers = verb === "add" || verb === "restart" || verb === "failover" || verb === "drop-subscribers"
    if (!isServers && !live.processes().some(({ name }) => name === target)) return
    const name = target!
    switch (verb) {
      case "acquire":
        return desk.order(name, { _tag: "Acquire", hold: value })
      case "contend":
        return desk.order(name, { _tag: "Acquire", hold: value ?? 1000, rest: 1500 })
      case "release":
        return desk.order(name, { _tag: "Release" })
      case "crash":
        return live.kill(name)
      case "start":
        return live.restart(name)
      case "pause":
        return live.pause(name)
      case "resume":
        return live.resume(name)
      case "cut":
        return live.cut(name)
      case "heal":
        live.heal(name)
        this.delays.delete(name)
        return live.setLink(name, {})
      case "slow": {
        const delay = value ?? 150
        this.delays.set(name, delay)
        const range = [0.9 * delay, 1.1 * delay] as const
        return live.setLink(name, { requestDelay: range, replyDelay: range })
      }
      case "skew":
        return live.stepClock(name, value ?? 60_000)
      case "add":
        if (live.processes().length < maxProcesses) this.history.lane(live.add())
        return
      case "restart":
        return live.restartServer({ keepData: true })
      case "failover":
        return live.failover({ loseLastWrites: 2 })
      case "drop-subscribers":
        return live.dropSubscribers()
    }
  }

  private read(): void {
    const { events, parcels } = this.live
    for (; this.eventsRead < events.length; this.eventsRead++) this.history.add(events[this.eventsRead]!)
    this.history.parcels = parcels
    this.history.now = this.now
    this.history.places(this.queue())
  }

  /** Reads the waiting ids from the queue on the server, in order. */
  private queue(): ReadonlyArray<string> {
    if (this.scenario.fleet._tag !== "Mutex") return []
    return this.live.read(mutexFleet.queueKey).filter((_, index) => index % 2 === 0)
  }

  /** Returns the current state of all processes. */
  parts(): ReadonlyArray<Part> {
    const simba = this.scenario.fleet._tag === "Mutex" ? this.scenario.fleet.habits.simba ?? [] : []
    return this.live.processes().map(({ clockStep, isCut, name, state }) => {
      const lane = this.history.lane(name)
      const { activity } = lane
      const lease = state === "dead" || activity !== "leading" ? undefined : this.desk.timesLeft.get(name)
      return {
        name,
        state,
        isCut,
        clockStep,
        timeLeft: lease === undefined ? undefined : Math.max(0, lease.left - (this.now - lease.at)),
        token: activity === "leading" ? lane.token : undefined,
        ordinal: activity === "leading" ? this.history.ordinals.get(lane.token ?? -1) : undefined,
        place: activity === "waiting" ? this.history.placeOf(name) : undefined,
        streams: lane.owned,
        activity,
        isSimba: simba.includes(name),
        delay: this.delays.get(name) ?? 0
      }
    })
  }
}
