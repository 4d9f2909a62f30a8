/**
 * Plays hand-written histories to a checker without programs. Commands run on fake-redis, time passes only in `wait`,
 * and the test says which faults have happened.
 */
import { sharedLua } from "@effect-simba/fake-redis/Engine"
import type { Event, Fields, Phase } from "../../src/internal/simulation/history.ts"
import type { LockModel } from "../../src/internal/simulation/ownershipTracker.ts"
import type { ProcessSlot } from "../../src/internal/simulation/process.ts"
import { never, RunState } from "../../src/internal/simulation/runState.ts"
import type { Checker } from "../../src/internal/simulation/setup.ts"
import { viewOf } from "../../src/internal/simulation/view.ts"

const lua = await sharedLua()

/** The process state that a test may set. */
interface Client {
  state: "running" | "dead" | "paused"
  resumedAt: number
  sleptUntil: number
  wasSuspended: boolean
  openFibers: number
  openTimers: number
  processor: { lateness: number; pace: { isOrdered: boolean } }
}

type Slot = Omit<ProcessSlot, "process"> & { process: Client }

const slot = (name: string): Slot => ({
  name,
  index: 0,
  generation: 1,
  fiber: undefined,
  disturbedAt: never,
  lateUntil: never,
  steppedAt: never,
  faults: 0,
  process: {
    state: "running",
    resumedAt: never,
    sleptUntil: never,
    wasSuspended: false,
    openFibers: 0,
    openTimers: 0,
    processor: { lateness: 0, pace: { isOrdered: true } }
  }
})

/** A history with the clients `c1`, `c2` and `c3`. */
export class History {
  readonly state: RunState
  private readonly checks: ReturnType<Checker["start"]>
  private readonly sessions = new Map<string, ReturnType<RunState["server"]["accept"]>>()
  private readonly slots = new Map(["c1", "c2", "c3"].map((name) => [name, slot(name)]))

  constructor(checker: Checker, lock: LockModel) {
    this.state = new RunState({
      seed: "1",
      clients: 3,
      program: () => {
        throw new Error("a hand-written history has no program")
      },
      lock,
      checkers: [checker],
      network: { requestDelay: [0, 0], replyDelay: [0, 0] },
      faults: {},
      enabled: [],
      duration: 0,
      calm: 0,
      liveness: 0,
      closing: 0
    }, lua)
    this.state.slots.push(...this.slots.values() as Iterable<unknown> as Iterable<ProcessSlot>)
    this.checks = checker.start(viewOf(this.state, checker.name))
    if (this.checks.onEvent !== undefined) this.state.listeners.push(this.checks.onEvent)
    this.state.server.listeners.add((command) => {
      const at = this.now
      this.state.emit(command === undefined ? { _tag: "Expiry", at } : { _tag: "Command", at, command })
      this.state.emitOwners(command ?? "expiry")
    })
  }

  get now(): number {
    return this.state.world.now()
  }

  /** The violations so far. */
  get found(): string {
    return this.state.violations.map(({ message }) => message).join("\n")
  }

  client(name = "c1"): Slot {
    return this.slots.get(name)!
  }

  /** Runs a command from `c1`. */
  send(...args: ReadonlyArray<string>): void {
    this.sendAs("c1", ...args)
  }

  sendAs(client: string, ...args: ReadonlyArray<string>): void {
    const role = args[0] === "SUBSCRIBE" || args[0] === "UNSUBSCRIBE" ? "subscriber" : "commands"
    const key = `${client} ${role}`
    const session = this.sessions.get(key) ??
      this.state.server.accept(client, role, 0, { push: () => {}, closed: () => {} })
    this.sessions.set(key, session)
    session.execute(args, () => {})
  }

  /** Runs a command without an event, because faults change data without commands. */
  lose(...args: ReadonlyArray<string>): void {
    this.state.server.engine.connect(() => {}).execute(args, () => {})
  }

  note(kind: string, fields: Fields = {}, client = "c1"): void {
    const { generation } = this.client(client)
    this.state.emit({ _tag: "Note", at: this.now, client, generation, kind, fields })
  }

  emit(event: Event): void {
    this.state.emit(event)
  }

  fault(fault: string, target = "c1"): void {
    this.state.fault(fault, target)
  }

  wait(millis: number): void {
    this.state.world.runUntil(this.now + millis)
  }

  enter(phase: Phase): void {
    this.state.enter(phase)
  }

  /** Ends the liveness phase. Returns whether the checker agrees that the program has recovered. */
  converge(): boolean {
    const isConverged = this.checks.isConverged?.() ?? true
    this.checks.onConverged?.()
    return isConverged
  }

  disconnect(): void {
    for (const session of this.sessions.values()) session.close()
  }

  close(): void {
    this.checks.onClosed?.()
  }
}

/** Returns what a checker finds in a history. */
export const verdict = (checker: Checker, lock: LockModel) => (play: (history: History) => void): string => {
  const history = new History(checker, lock)
  play(history)
  return history.found
}

const party = (verb: string, length: number) => (args: ReadonlyArray<string>) =>
  args[0] === verb && args.length >= length && args[1]!.includes(":")
    ? [{ resource: args[1]!.split(":")[1]!, id: args[2]! }]
    : []

/**
 * A lock for two resources. `SET owner:m a` takes one, `DEL owner:m a` and `ZREM queue:m a` release it, and `UNLINK
 * owner:m a` releases it by force. `ZADD queue:m 1 a` queues. The `fence:m` key contains the token.
 */
export const lock: LockModel = {
  resources: ["m", "n"],
  ownerKey: (resource) => `owner:${resource}`,
  tokenKey: (resource) => `fence:${resource}`,
  fencedKey: (resource) => `fenced:${resource}`,
  channel: (_, id) => `channel:${id}`,
  asked: (args) => [...party("SET", 3)(args), ...queued(args)],
  queued: (args) => queued(args),
  released: (args) => [...party("DEL", 3)(args), ...party("ZREM", 3)(args)],
  forced: party("UNLINK", 3)
}

const queued = (args: ReadonlyArray<string>) =>
  args[0] === "ZADD" ? [{ resource: args[1]!.split(":")[1]!, id: args[3]!, place: Number(args[2]) }] : []

/** `a` becomes the owner of `m`. */
export const take = (history: History, id: string, millis = 1000, client = "c1") =>
  history.sendAs(client, "SET", "owner:m", id, "PX", String(millis))
