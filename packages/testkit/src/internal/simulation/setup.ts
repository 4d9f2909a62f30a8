/** The types shared by programs, checkers and the simulation engine. */
import type { Subscriber } from "@effect-simba/core/Subscriber"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Redis } from "../client/effectRedis.ts"
import type { Choices, Deviations } from "./choices.ts"
import type { FaultName, Faults } from "./faults.ts"
import type { Event, Fields, Phase } from "./history.ts"
import type { LockModel, Owned } from "./ownershipTracker.ts"
import type { Range } from "./prng.ts"

/** A simulated process, from its program's point of view. */
export interface Client {
  readonly name: string
  readonly index: number
  /** The number of this client's process. It increases with each restart after a kill or a failure. */
  readonly generation: number
  /** Returns a uniform number in [0, 1) from this process's random stream. */
  readonly random: () => number
  readonly phase: () => Phase
  /**
   * Keeps the process's processor busy for this many milliseconds, or for a random number in this range. Meanwhile its
   * other fibers wait. Takes no time without the `processor` fault.
   */
  readonly compute: (millis: number | Range) => Effect.Effect<void>
  /**
   * In an exploration, waits until all processes have called this function. Only what happens afterwards is explored.
   */
  readonly ready: Effect.Effect<void>
  /**
   * Runs work that an exploration may interrupt whenever something arrives at the process. `name` identifies the work.
   */
  readonly interruptible: <E, R>(name: string, work: Effect.Effect<void, E, R>) => Effect.Effect<void, E, R>
  /** Adds a note to the history, for checkers and the trace. */
  readonly note: (kind: string, fields?: Fields) => void
  /**
   * Acts on an external system, such as a file or another database. `act` runs after `delay` milliseconds, even if the
   * process has died by then. The reply takes another `delay`.
   */
  readonly outside: <A>(delay: number, act: (outside: Outside) => A) => Effect.Effect<A>
}

/** An external system that faults do not affect. */
export interface Outside {
  /** The external system's memory, which is empty when a run begins. */
  readonly state: Map<string, unknown>
  readonly note: (kind: string, fields?: Fields) => void
}

/** A stream entry, with its id as text. */
export type StreamEntryView = readonly [id: string, fields: ReadonlyArray<string>]

/** The current state of a stream and its groups. */
export interface StreamView {
  readonly entries: ReadonlyArray<StreamEntryView>
  readonly group: (name: string) => GroupView | undefined
}

interface Delivery {
  readonly consumer: string
  readonly deliveredAt: number
  /** The delivery count. */
  readonly deliveries: number
}

/** A consumer group. Times are in milliseconds of server time. */
export interface GroupView {
  readonly consumers: ReadonlyArray<string>
  readonly lastDelivered: string
  /** A pending entry's last delivery. */
  readonly delivery: (entry: string) => Delivery | undefined
  /** The ids of a consumer's pending entries. */
  readonly pendingOf: (consumer: string) => ReadonlyArray<string>
}

/** The entries that were added to a stream and those that were removed from it. */
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
  /** Returns the owner. An owner whose lease has expired is still returned until it has a successor. */
  readonly lastOwner: (resource: string) => Owned | undefined
  /** The server time in milliseconds. */
  readonly serverNow: () => number
  readonly subscribers: (channel: string) => number
  /** The number of subscriptions that have ended. */
  readonly departures: () => number
  readonly subscriptions: () => number
  readonly connections: () => number
  readonly fibers: () => number
  readonly timers: () => number
  /** Reads a string on the server. */
  readonly read: (key: string) => string | undefined
  /** Reads a hash on the server. Returns an empty map if the hash does not exist. */
  readonly hash: (key: string) => ReadonlyMap<string, string>
  /** Reads a field of a hash on the server. */
  readonly field: (key: string, field: string) => string | undefined
  /** Reads a stream on the server. */
  readonly stream: (key: string) => StreamView | undefined
  /** Follows a stream. Each call to the returned function returns the changes since the previous call. */
  readonly follow: (key: string) => () => StreamChanges
  /**
   * When a live key expires, in milliseconds of server time. Infinity if the key does not expire, `undefined` if it
   * does not exist.
   */
  readonly expiresAt: (key: string) => number | undefined
  readonly keys: () => ReadonlyArray<{ readonly key: string; readonly expiresAt: number | undefined }>
  /** When a fault last affected a client or, without a client, the server. Returns the current time during a fault. */
  readonly disturbedAt: (client?: string) => number
  /** When the server last lost data, through a fault or an eviction. */
  readonly lossAt: () => number
  /** When the server's wall clock was last stepped. */
  readonly serverStepAt: () => number
  /** When the server's wall clock was last stepped forward, or a failover promoted a replica whose clock was ahead. */
  readonly serverForwardAt: () => number
  /** When a client's wall clock was last stepped. */
  readonly clockStepAt: (client: string) => number
  readonly isRunning: (client: string) => boolean
  readonly resumedAt: (client: string) => number
  /** An upper bound on a client's event-loop lag, in milliseconds: the time since its previous turn started. */
  readonly lateness: (client: string) => number
  /** Whether a client's fibers run in the same order and yield at the same points as in Effect. */
  readonly isOrdered: (client: string) => boolean
  /** When a client's machine last woke up. */
  readonly sleptUntil: (client: string) => number
  /** Whether the client's machine was suspended during its last pause. */
  readonly wasSuspended: (client: string) => boolean
  readonly every: (millis: number, run: () => void) => void
  readonly violated: (message: string) => void
}

export interface Checker {
  readonly name: string
  readonly start: (view: View) => {
    readonly onEvent?: (event: Event) => void
    /** Whether the program has recovered from the last fault. The liveness phase ends when all checkers return true. */
    readonly isConverged?: () => boolean
    /** Called at the end of the liveness phase. */
    readonly onConverged?: () => void
    /** Called after all scopes are closed. */
    readonly onClosed?: () => void
  }
}

export interface Setup<E> {
  readonly seed: string
  /** The choices in an exploration. Nothing else in an exploration is random. */
  readonly explored?: { readonly choices: Choices; readonly deviations: Deviations } | undefined
  /** Whether an exploration may end before `duration`. */
  readonly isOver?: ((view: View) => boolean) | undefined
  readonly clients: number
  readonly program: (client: Client) => Effect.Effect<void, E, Redis | Subscriber | Scope.Scope>
  readonly lock: LockModel
  readonly checkers: ReadonlyArray<Checker>
  readonly network: { readonly requestDelay: Range; readonly replyDelay: Range }
  readonly faults: Faults
  /** The faults that may be injected in this run. By default, a random half of `faults`. */
  readonly enabled: ReadonlyArray<FaultName> | undefined
  /** The maximum number of recent writes that the server can lose in a failover that is not part of `faults`. */
  readonly undoDepth?: number | undefined
  /** The durations of the phases, in milliseconds. */
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
