/** Builds a contestant from any library that returns locks as promises. Used by the peers and raw. */
import { Effect, Exit, Scope } from "effect"
import {
  type Connect,
  type ContendRequest,
  type Contestant,
  type Holding,
  micros,
  nameOf,
  namesFor,
  type Pairs,
  type PairsRequest,
  type Session,
  Turns
} from "./contestant.ts"

export type Release = () => Promise<unknown>

export interface Locks {
  /** Waits for the lock. */
  readonly acquire: (name: string) => Promise<Release>
  /**
   * Like `acquire`, but for a lock that is held for a long time. Set if the library does not renew locks by default.
   */
  readonly hold?: (name: string) => Promise<Release>
  /** Measures acquire-release pairs. Set if the contestant has a faster way than `acquire` and `Release`. */
  readonly pairs?: (request: PairsRequest) => Promise<Pairs>
  readonly close: () => Promise<unknown> | void
}

const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

const pairs = (locks: Locks) => async ({ inFlight, millis, oneName }: PairsRequest): Promise<Pairs> => {
  const end = performance.now() + millis
  let pairs = 0
  let failures = 0
  const loop = async (names: ReadonlyArray<string>) => {
    for (let i = 0; performance.now() < end; i++) {
      try {
        const release = await locks.acquire(names[i % names.length]!)
        await release()
        pairs++
      } catch (error) {
        // Some peers give up if the mutex is held, but all must succeed if it is free
        if (!oneName) throw error
        failures++
      }
    }
  }
  await Promise.all(namesFor(inFlight, oneName).map(loop))
  return { pairs, failures }
}

const contend = (locks: Locks, request: ContendRequest, onGrant: () => void) => {
  const turns = new Turns()
  let isOver = false
  let holdings: Array<Holding> = []
  let failures = 0
  let granted: (at: number) => void = () => undefined
  const first = new Promise<number>((resolve) => {
    granted = resolve
  })
  const one = async (contender: number) => {
    const name = nameOf(request, contender)
    while (!isOver) {
      let release: Release
      try {
        release = await locks.acquire(name)
      } catch {
        failures++
        await pause(0)
        continue
      }
      const grantedAt = micros()
      granted(grantedAt)
      turns.granted()
      onGrant()
      if (!isOver && request.holdMillis > 0) await pause(request.holdMillis)
      const next = turns.next()
      holdings.push([contender, grantedAt, micros()])
      await release().catch(() => failures++)
      if (!isOver) await next
    }
  }
  const all = Promise.all(Array.from({ length: request.contenders }, (_, i) => one(i)))
  return {
    grantedElsewhere: () => turns.granted(),
    first: Effect.promise(() => first),
    taken: Effect.sync(() => {
      const taken = { holdings, failures }
      holdings = []
      failures = 0
      return taken
    }),
    // Stop contenders that are still waiting, or they would take part in the next round. Abandon those that do not stop
    // within 10 seconds
    stop: Effect.promise(() => {
      isOver = true
      turns.granted()
      return Promise.race([all, pause(10_000)])
    })
  }
}

const atOnce = 64

const hold = (locks: Locks, names: ReadonlyArray<string>) => {
  const acquire = locks.hold ?? locks.acquire
  return Effect.acquireRelease(
    Effect.tryPromise(async () => {
      const releases: Array<Release> = []
      for (let i = 0; i < names.length; i += atOnce) {
        releases.push(...await Promise.all(names.slice(i, i + atOnce).map(acquire)))
      }
      return releases
    }),
    (releases) =>
      Effect.promise(async () => {
        for (let i = 0; i < releases.length; i += atOnce) {
          await Promise.allSettled(releases.slice(i, i + atOnce).map((release) => release()))
        }
      })
  )
}

export const fromLocks = (open: (request: Connect) => Promise<Locks>): Contestant => ({
  connect: Effect.fnUntraced(function*(request) {
    const locks = yield* Effect.acquireRelease(
      Effect.tryPromise(() => open(request)),
      (locks) => Effect.promise(async () => locks.close())
    )
    const session: Session = {
      pairs: (request) => Effect.tryPromise(() => (locks.pairs ?? pairs(locks))(request)),
      contend: (request, onGrant) =>
        Effect.acquireRelease(Effect.sync(() => contend(locks, request, onGrant)), ({ stop }) => stop),
      hold: (names) => Effect.asVoid(hold(locks, names))
    }
    return session
  })
})

/** Closes a scope that was created without `Effect.scoped`. */
export const close = (scope: Scope.Closeable) => Scope.close(scope, Exit.void)
