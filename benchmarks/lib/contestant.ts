/** The operations that every contestant implements: effect-simba, raw, and the peers. */
import type { Effect, Scope } from "effect"

/** The options for a session. */
export interface Connect {
  readonly url: string
  /** effect-simba only: the server is a Cluster node. */
  readonly isCluster: boolean
  /**
   * How long a lock lasts if it is not renewed. The contestant converts this to its own options, such as `ttl` and
   * `transition` in effect-simba.
   */
  readonly leaseMillis: number
  /** Peers only: default settings, or the fastest sensible ones. */
  readonly setting: "default" | "fast"
  /**
   * effect-simba only: how long a turn may serve several fibers of a process, in milliseconds; undefined for the
   * default.
   */
  readonly localTurn?: number | undefined
  /**
   * Raw only. `direct`: a waiter trusts the message that grants it the lock. `confirmed`: the waiter confirms the grant
   * with the server. `ours`: raw uses effect-simba's scripts and messages. `effect`: the same, in Effect fibers.
   */
  readonly protocol: "direct" | "confirmed" | "ours" | "effect"
}

export interface PairsRequest {
  readonly inFlight: number
  readonly millis: number
  /** An alternative way to acquire and release, such as `withLock`. */
  readonly variant: string
  /** Whether all loops compete for one mutex. Otherwise, each loop has its own names. */
  readonly oneName: boolean
}

export interface Pairs {
  readonly pairs: number
  /** The number of attempts that failed with an error and were repeated. */
  readonly failures: number
}

export interface ContendRequest {
  readonly name: string
  readonly contenders: number
  /** The number of places in the queue, which the contenders share. In effect-simba, each `Mutex` layer has one. */
  readonly places: number
  /** The number of mutexes, which all have the same number of contenders. */
  readonly mutexes: number
  readonly holdMillis: number
  /** Whether to notify other processes of each grant because they have contenders for the same mutex. */
  readonly announces: boolean
}

/**
 * The contender, the instant of its grant, and the instant just before its release, in microseconds on the machine's
 * monotonic clock.
 */
export type Holding = readonly [contender: number, grantedAt: number, releasedAt: number]

export interface Contended {
  readonly holdings: ReadonlyArray<Holding>
  /** The number of attempts that failed with an error and were repeated. */
  readonly failures: number
}

/** Contenders that repeatedly acquire a mutex until the scope closes. */
export interface Contending {
  /** Must be called when a contender in another process is granted the mutex. */
  readonly grantedElsewhere: () => void
  /** The instant of the first grant to one of the contenders, in microseconds on the machine's monotonic clock. */
  readonly first: Effect.Effect<number>
  /** Returns what has happened since the last call. */
  readonly taken: Effect.Effect<Contended>
}

export type Stance = "waiter" | "contender"

export interface Session {
  /** Acquires and releases continuously. */
  readonly pairs: (request: PairsRequest) => Effect.Effect<Pairs, unknown>
  readonly contend: (
    request: ContendRequest,
    onGrant: () => void
  ) => Effect.Effect<Contending, unknown, Scope.Scope>
  /** effect-simba only: waits for all of these mutexes, as waiters or as contenders, until the scope closes. */
  readonly stand?: (names: ReadonlyArray<string>, as: Stance) => Effect.Effect<void, unknown, Scope.Scope>
  /** Holds and renews all of these mutexes until the scope closes. */
  readonly hold: (names: ReadonlyArray<string>) => Effect.Effect<void, unknown, Scope.Scope>
}

export interface Contestant {
  readonly connect: (request: Connect) => Effect.Effect<Session, unknown, Scope.Scope>
}

/**
 * Keeps a contender that has released the mutex from acquiring it before another contender has had it. Otherwise it
 * would often be faster than the waiters, and there would be no hand-off to measure.
 */
export class Turns {
  private waiting: Array<() => void> = []
  private readonly longestMillis = 2000

  granted(): void {
    const waiting = this.waiting
    this.waiting = []
    for (const resume of waiting) resume()
  }

  /** Resolves at the next grant, or after two seconds. Call it before the release. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.longestMillis)
      this.waiting.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
}

/** Reads the monotonic clock that all processes on a machine share, in microseconds. */
export const micros = (): number => Number(process.hrtime.bigint()) / 1000

/** Creates a few names for each of `inFlight` loops before the measurement begins. */
export const namesFor = (inFlight: number, oneName: boolean): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from(
    { length: inFlight },
    (_, i) => oneName ? ["contended"] : Array.from({ length: inFlight > 1000 ? 1 : 8 }, (_, j) => `pairs-${i}-${j}`)
  )

export const nameOf = ({ mutexes, name }: ContendRequest, contender: number): string =>
  mutexes === 1 ? name : `${name}-${contender % mutexes}`
