/** The parts of a simulation: programs, checkers, and their view of it. */
import type { Subscriber } from "@effect-simba/core/Subscriber"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Redis } from "../client/effectRedis.ts"
import type { Choices, Deviations } from "./choices.ts"
import type { FaultName, Faults } from "./faults.ts"
import type { Event, Fields, Phase } from "./history.ts"
import type { LockModel, Owned } from "./ownershipTracker.ts"
import type { Range } from "./prng.ts"

/** The process in which a program runs. */
export interface Client {
  readonly name: string
  readonly index: number
  /** Numbers the processes of this client: each start after a kill or a failure has the next number. */
  readonly generation: number
  /** Uniform in [0, 1), from a stream of this process. */
  readonly random: () => number
  readonly phase: () => Phase
  /**
   * Uses the processor of its process for this many milliseconds, or for a number drawn between two: its other fibers
   * wait. Without the fault `processor`, this takes no time.
   */
  readonly compute: (millis: number | Range) => Effect.Effect<void>
  /** In an exploration: waits until all processes have called it. Only what follows is explored. */
  readonly ready: Effect.Effect<void>
  /**
   * Runs work that an exploration may interrupt whenever something arrives at its process. `name` is the name of the
   * work.
   */
  readonly interruptible: <E, R>(name: string, work: Effect.Effect<void, E, R>) => Effect.Effect<void, E, R>
  /** Adds a note to the history, for the checkers and the trace. */
  readonly note: (kind: string, fields?: Fields) => void
  /**
   * Acts on an external system, such as a file or another database. `act` runs there after `delay` milliseconds, even
   * if the process dies meanwhile, and the reply takes `delay` again.
   */
  readonly outside: <A>(delay: number, act: (outside: Outside) => A) => Effect.Effect<A>
}

/** An external system, which faults do not affect. */
export interface Outside {
  /** Its memory: empty when a run begins. */
  readonly state: Map<string, unknown>
  readonly note: (kind: string, fields?: Fields) => void
}

/** An entry of a stream: ids are text. */
export type StreamEntryView = readonly [id: string, fields: ReadonlyArray<string>]

/** A stream with its groups, as it is now. */
export interface StreamView {
  readonly entries: ReadonlyArray<StreamEntryView>
  readonly group: (name: string) => GroupView | undefined
}

interface Delivery {
  readonly consumer: string
  readonly deliveredAt: number
  /** How often it was delivered. */
  readonly deliveries: number
}

/** A consumer group. Times are server time in milliseconds. */
export interface GroupView {
  readonly consumers: ReadonlyArray<string>
  readonly lastDelivered: string
  /** The consumer to which a pending entry was last delivered. */
  readonly delivery: (entry: string) => Delivery | undefined
  /** The pending entries of a consumer. */
  readonly pendingOf: (consumer: string) => ReadonlyArray<string>
}

/** The entries that were added to a stream and removed from it. */
export interface StreamChanges {
  readonly added: ReadonlyArray<StreamEntryView>
  readonly removed: ReadonlyArray<StreamEntryView>
}

export interface View {
  readonly now: () => number
  readonly phase: () => Phase
  readonly clients: number
  readonly names: () => ReadonlyArray<string>
  readonly lock: LockModel
  readonly owner: (resource: string) => Owned | undefined
  /** The owner, or the former owner if its lease expired and it has no successor. */
  readonly lastOwner: (resource: string) => Owned | undefined
  /** Server time in milliseconds. */
  readonly serverNow: () => number
  readonly subscribers: (channel: string) => number
  /** Counts unsubscriptions. */
  readonly departures: () => number
  readonly subscriptions: () => number
  readonly connections: () => number
  readonly fibers: () => number
  readonly timers: () => number
  /** A string on the server. */
  readonly read: (key: string) => string | undefined
  /** A hash on the server; empty if there is none. */
  readonly hash: (key: string) => ReadonlyMap<string, string>
  /** A field of a hash on the server. */
  readonly field: (key: string, field: string) => string | undefined
  /** A stream on the server. */
  readonly stream: (key: string) => StreamView | undefined
  /** Follows a stream: each call returns the changes since the previous call. */
  readonly follow: (key: string) => () => StreamChanges
  /**
   * When a live key expires, in milliseconds of server time: Infinity for a key without expiry, undefined for an absent
   * one.
   */
  readonly expiresAt: (key: string) => number | undefined
  readonly keys: () => ReadonlyArray<{ readonly key: string; readonly expiresAt: number | undefined }>
  /** When a fault last affected a client, or the server: the current time if a fault affects it now. */
  readonly disturbedAt: (client?: string) => number
  /** When the server last lost data, by a fault or by an eviction. */
  readonly lossAt: () => number
  /** When the server's wall clock was last stepped. */
  readonly serverStepAt: () => number
  /** When the server's wall clock was last stepped forward, or a new primary's clock was ahead. */
  readonly serverForwardAt: () => number
  /** When a client's wall clock was last stepped. */
  readonly clockStepAt: (client: string) => number
  readonly isRunning: (client: string) => boolean
  readonly resumedAt: (client: string) => number
  /** An upper bound of the lateness of its event loop, in milliseconds: the current turn and the previous one. */
  readonly lateness: (client: string) => number
  /** Whether a client's fibers continue in the order in which they became runnable, and yield as in Effect. */
  readonly isOrdered: (client: string) => boolean
  /** When its machine last woke up. */
  readonly sleptUntil: (client: string) => number
  /** Whether its last pause was a suspension of its machine. */
  readonly wasSuspended: (client: string) => boolean
  readonly every: (millis: number, run: () => void) => void
  readonly violated: (message: string) => void
}

export interface Checker {
  readonly name: string
  readonly start: (view: View) => {
    readonly onEvent?: (event: Event) => void
    /** Whether everything that must happen after the last fault has happened. The liveness phase ends then. */
    readonly isConverged?: () => boolean
    /** Called at the end of the liveness phase. */
    readonly onConverged?: () => void
    /** Called when all scopes are closed. */
    readonly onClosed?: () => void
  }
}

export interface Setup<E> {
  readonly seed: string
  /** The choices of an exploration, in which nothing else is random. */
  readonly explored?: { readonly choices: Choices; readonly deviations: Deviations } | undefined
  /** For an exploration: whether it may end before `duration`. */
  readonly isOver?: ((view: View) => boolean) | undefined
  readonly clients: number
  readonly program: (client: Client) => Effect.Effect<void, E, Redis | Subscriber | Scope.Scope>
  readonly lock: LockModel
  readonly checkers: ReadonlyArray<Checker>
  readonly network: { readonly requestDelay: Range; readonly replyDelay: Range }
  readonly faults: Faults
  /** Which of the faults take part; by default a random half. */
  readonly enabled: ReadonlyArray<FaultName> | undefined
  /** How many of its last writes the server can lose in a failover that is not drawn as a fault. */
  readonly undoDepth?: number | undefined
  /** Milliseconds. */
  readonly duration: number
  readonly calm: number
  readonly liveness: number
  readonly closing: number
}

export interface Violation {
  readonly checker: string
  readonly at: number
  readonly message: string
}

export interface Outcome {
  readonly enabled: ReadonlyArray<FaultName>
  readonly violations: ReadonlyArray<Violation>
  readonly events: ReadonlyArray<Event>
  readonly commands: number
  readonly virtualMillis: number
}
