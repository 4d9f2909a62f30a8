/** The operations that every contestant has: effect-simba, the raw limit, and the peers. */
import type { Effect, Scope } from "effect"

/** The options of a session. */
export interface Connect {
  readonly url: string
  /** effect-simba only: the server is a node of a Cluster. */
  readonly isCluster: boolean
  /** How long a lock lives without renewal, in the contestant's own periods: `ttl + transition` of effect-simba. */
  readonly leaseMillis: number
  /** Peers only: with defaults, or at their fastest sensible setting. */
  readonly setting: "default" | "fast"
  /**
   * effect-simba only, in milliseconds: how long a turn serves fiber after fiber of a process; undefined for the
   * default.
   */
  readonly localTurn?: number | undefined
  /**
   * Raw only. `direct`: a waiter trusts the message of its grant. `confirmed`: it asks the server, and trusts the
   * reply. `ours`: raw sends the scripts of effect-simba, and trusts its messages.
   */
  readonly protocol: "direct" | "confirmed" | "ours"
}

export interface PairsRequest {
  readonly inFlight: number
  readonly millis: number
  /** An alternative way to acquire and release, such as `withLock`. */
  readonly variant: string
  /** Whether all loops compete for one mutex; otherwise each loop has its own names. */
  readonly oneName: boolean
}

export interface Pairs {
  readonly pairs: number
  /** Attempts that failed with an error, and were repeated. */
  readonly failures: number
}

export interface ContendRequest {
  readonly name: string
  readonly contenders: number
  /** How many places in the fleet's queue the contenders share: in effect-simba, one for each `Mutex` layer. */
  readonly places: number
  /** How many mutexes they contend for; each has the same number of contenders. */
  readonly mutexes: number
  readonly holdMillis: number
  /** Whether others must be notified of each grant, because they contend in another process. */
  readonly announces: boolean
}

/**
 * The contender, and two instants in microseconds of the machine's monotonic clock: granted, and about to be released.
 */
export type Holding = readonly [contender: number, grantedAt: number, releasedAt: number]

export interface Contended {
  readonly holdings: ReadonlyArray<Holding>
  /** Attempts that failed with an error, and were repeated. */
  readonly failures: number
}

/** Contenders that want a mutex repeatedly, until the scope closes. */
export interface Contending {
  /** Must be called when a contender in another process was granted the mutex. */
  readonly grantedElsewhere: () => void
  /** When one of the contenders was first granted the mutex, in microseconds of the machine's monotonic clock. */
  readonly first: Effect.Effect<number>
  /** What happened since the last call. */
  readonly taken: Effect.Effect<Contended>
}

export type Stance = "waiter" | "contender"

export interface Session {
  /** Acquires and releases without a pause. */
  readonly pairs: (request: PairsRequest) => Effect.Effect<Pairs, unknown>
  readonly contend: (
    request: ContendRequest,
    onGrant: () => void
  ) => Effect.Effect<Contending, unknown, Scope.Scope>
  /** effect-simba only: waits for all of them, as waiters or as contenders, until the scope closes. */
  readonly stand?: (names: ReadonlyArray<string>, as: Stance) => Effect.Effect<void, unknown, Scope.Scope>
  /** Holds all of them, renewed, until the scope closes. */
  readonly hold: (names: ReadonlyArray<string>) => Effect.Effect<void, unknown, Scope.Scope>
}

export interface Contestant {
  readonly connect: (request: Connect) => Effect.Effect<Session, unknown, Scope.Scope>
}

/**
 * A contender that has released asks again only when another has been granted the mutex. Otherwise it would be quicker
 * than most waiters, and there would be no hand-off to measure.
 */
export class Turns {
  private waiting: Array<() => void> = []
  private readonly longestMillis = 2000

  granted(): void {
    const waiting = this.waiting
    this.waiting = []
    for (const resume of waiting) resume()
  }

  /** Settles with the next grant, or after a while. Call it before the release. */
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

/** Microseconds of the clock that all processes of one machine share. */
export const micros = (): number => Number(process.hrtime.bigint()) / 1000

/** A few names for each of `inFlight`, made beforehand so that making them is not measured. */
export const namesFor = (inFlight: number, oneName: boolean): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from(
    { length: inFlight },
    (_, i) => oneName ? ["contended"] : Array.from({ length: inFlight > 1000 ? 1 : 8 }, (_, j) => `pairs-${i}-${j}`)
  )

export const nameOf = ({ mutexes, name }: ContendRequest, contender: number): string =>
  mutexes === 1 ? name : `${name}-${contender % mutexes}`
