/**
 * A process's program in a mutex simulation: fibers that acquire mutexes in every way, contenders, and forced releases.
 * The plans in `mutexPlan.ts` and `mixedFleetPlan.ts` use it, and the nemesis runs it on real servers.
 */
import { type Lease, Mutex } from "@effect-simba/core"
import type { MutexName } from "@effect-simba/core/MutexName"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { RedisFence } from "@effect-simba/redis"
import type { Simulation } from "@effect-simba/testkit"
import { Duration, Effect, Option, Queue } from "effect"
import { Redis } from "effect/persistence/Redis"
import { mutexChannel } from "../../src/internal/mutex/keys.ts"

export const ttl = 2000
export const transition = 2500
export const confirm = 500

/**
 * - `rest`: maximum pause between two operations, in milliseconds. `patience`: maximum timeout, in milliseconds.
 * - `workers`: number of fibers that acquire and release. `contenders`: number of fibers that run `Mutex.contend`.
 * - `holds`: maximum length of most protected work, in milliseconds. Most work outside `protect` takes up to about 1.25
 *   times as long. Instead, 10% of protected work takes one to four times `ttl`, and 15% of the other work takes one to
 *   about three times `ttl`.
 * - `forces`: fraction of operations that are forced releases, between 0 and 1. Some follow a grant immediately.
 * - `writes`: `fenced` work writes to two resources that check tokens, one in the same Redis and one outside.
 *   `careless` work writes to resources that do not check.
 * - `localTurn`: the option for `Mutex.layer`, in milliseconds.
 * - `countsSubscribers`: whether the server can count subscribers, so that scripts can skip dead waiters. A Cluster
 *   cannot.
 * - `coalescing`: whether requests from one event-loop turn share a call, as with ioredis.
 * - `crowd`: number of additional mutexes. Every process acquires each of them for long, CPU-bound work.
 * - `computes`: maximum CPU time for one step of work, in milliseconds. It takes virtual time only under the
 *   `processor` fault.
 * - `throws`: whether the tracer and the logger sometimes throw.
 */
export interface Settings {
  readonly resources: ReadonlyArray<string>
  readonly workers: number
  readonly rest: number
  readonly patience: number
  readonly contenders: number
  readonly holds: number
  readonly forces: number
  readonly writes: "none" | "fenced" | "careless"
  readonly localTurn: number
  readonly countsSubscribers: boolean
  readonly coalescing: boolean
  readonly crowd: number
  readonly computes: number
  readonly throws: boolean
}

/** The key, in the same Redis, to which work writes its token. */
export const fencedKey = (resource: string) => `fenced:{${resource}}`

/** A contender's maximum backoff after failed attempts. */
const contenderRecovery = 1000 + 10_000 * 1.2

const make = (client: Simulation.Client, number: string, settings: Settings) => {
  const { note, random } = client
  const between = (low: number, high: number) => low + (high - low) * random()
  const pause = (low: number, high: number) => Effect.suspend(() => Effect.sleep(Duration.millis(between(low, high))))
  const anyResource = () => settings.resources[Math.floor(random() * settings.resources.length)]!
  const compute = client.compute([0, settings.computes])
  let waits = 0
  let writes = 0

  /** Calls `ensure` and notes how much time was left before the call, because `ensure` may take time. */
  const ensured = (lease: Lease.Lease) =>
    Effect.flatMap(
      lease.timeLeft,
      (left) =>
        Effect.map(lease.ensure, () =>
          note("ensured", { resource: lease.mutex, id: lease.id, left: Duration.toMillis(left) }))
    )

  const granted = (lease: Lease.Lease) => note("granted", { resource: lease.mutex, id: lease.id, token: lease.token })

  /**
   * Repeatedly sleeps, computes and runs `each` for a random time: usually up to `holds`, but one to four times `ttl`
   * in 10% of the calls. Each sleep takes from `low` to `high` milliseconds.
   */
  const steps = <E, R>(each: () => Effect.Effect<void, E, R>, low: number, high: number) =>
    Effect.gen(function*() {
      const end = random() < 0.1 ? between(ttl, 4 * ttl) : between(5, settings.holds)
      for (let passed = 0; passed < end;) {
        const step = Math.min(end - passed, between(low, high))
        passed += step
        yield* Effect.sleep(Duration.millis(step))
        yield* compute
        yield* each()
      }
    })

  /**
   * Writes to a resource outside Redis, which refuses tokens smaller than the largest one unless writes are `careless`.
   */
  const writeOutside = (lease: Lease.Lease) =>
    Effect.suspend(() => {
      const fields = {
        resource: lease.mutex,
        id: lease.id,
        write: `${client.name}.${client.generation}.${number}.${++writes}`
      }
      const { token } = lease
      note("writing", fields)
      return client.outside(between(0.1, 10), ({ note, state }) => {
        const accepted = settings.writes === "careless" || token >= (state.get(lease.mutex) as number ?? 0)
        if (accepted) state.set(lease.mutex, token)
        note("written", { ...fields, token, accepted: accepted ? 1 : 0 })
      })
    })

  const failed = Effect.sync(() => note("failed", { error: "write" }))
  const writeToRedis = (lease: Lease.Lease) => {
    const key = fencedKey(lease.mutex)
    if (settings.writes === "careless") {
      const send = Redis.use((redis) => redis.send("SET", key, String(lease.token)))
      return Effect.catchTag(Effect.timeout(Effect.asVoid(send), ttl), ["RedisError", "TimeoutError"], () => failed)
    }
    return Effect.catchTags(
      Effect.timeout(RedisFence.set({ resource: key, token: lease.token }, key, String(lease.token)), ttl),
      {
        TimeoutError: () => failed,
        ProtocolError: (error) => Effect.die(error),
        InvalidConfig: (error) => Effect.die(error),
        StaleToken: ({ largest }) => Effect.sync(() => note("stale", { id: lease.id, largest })),
        BackendError: () => failed
      }
    )
  }

  const write = (lease: Lease.Lease) =>
    Effect.suspend(() =>
      settings.writes === "none" ? Effect.void : random() < 0.5 ? writeOutside(lease) : writeToRedis(lease)
    )

  /** Notes the start and the end of work. The bracket guarantees both notes even if the fiber is interrupted. */
  const protectedWork = (lease: Lease.Lease) => {
    const fields = { resource: lease.mutex, id: lease.id }
    return Effect.acquireUseRelease(
      Effect.sync(() => note("begin", fields)),
      () => steps(() => Effect.andThen(Effect.sync(() => note("step", fields)), write(lease)), 20, 300),
      () => {
        note("stopped", fields)
        // Finalizers are part of the work
        return Effect.andThen(
          random() < 0.2 ? Effect.sleep("5 millis") : Effect.void,
          Effect.sync(() => note("end", fields))
        )
      }
    )
  }

  const bareWork = (lease: Lease.Lease) =>
    Effect.gen(function*() {
      yield* ensured(lease)
      const end = random() < 0.15 ? between(ttl, 3 * ttl) : between(5, 1.25 * settings.holds)
      for (let passed = 0; passed < end;) {
        const step = between(10, 400)
        passed += step
        yield* Effect.sleep(Duration.millis(step))
        yield* ensured(lease)
      }
      if (random() < 0.2) yield* lease.protect(protectedWork(lease))
    })

  /**
   * Releases the mutex by force as soon as the next grant is announced, possibly before the holder has confirmed the
   * grant.
   */
  const forceNextGrant = (resource: string) =>
    Effect.gen(function*() {
      const notices = yield* (yield* Subscriber).subscribe(mutexChannel(resource as MutexName))
      yield* Effect.timeoutOption(Queue.take(notices), settings.patience)
      yield* Mutex.forceRelease(resource)
    }).pipe(Effect.scoped)

  const once = Effect.gen(function*() {
    const resource = anyResource()
    if (settings.forces === 0 || random() >= settings.forces) return yield* use(resource)
    const how = random()
    if (how < 0.4) return yield* Effect.asVoid(Mutex.forceRelease(resource))
    if (how < 0.7) return yield* forceNextGrant(resource)
    // Force the release right after this process's own request, so that the message may overtake the reply
    const force = Effect.delay(Mutex.forceRelease(resource), between(0, 1))
    return yield* Effect.all([Effect.suspend(() => use(resource)), force], { concurrency: "unbounded", discard: true })
  })

  const use = (resource: string) => {
    const wait = `${number}.${++waits}`
    const waited = (lease: Lease.Lease) => {
      note("waited", { resource, wait, served: 1 })
      granted(lease)
    }
    const locked = (options?: Mutex.AcquireOptions) =>
      Mutex.withLock(resource, options)((lease) => {
        waited(lease)
        return protectedWork(lease)
      })
    const acquired = (options?: Mutex.AcquireOptions) =>
      Effect.scoped(Effect.flatMap(Mutex.acquire(resource, options), (lease) => {
        waited(lease)
        return bareWork(lease)
      }))
    // Start masked. Otherwise, an interruption right after the first note would leave the wait without an end
    const waiting = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.uninterruptibleMask((restore) => {
        note("waiting", { resource, wait })
        return Effect.ensuring(restore(effect), Effect.sync(() => note("waited", { resource, wait })))
      })
    const way = random()
    if (way < 0.35) return waiting(locked())
    if (way < 0.55) return waiting(acquired())
    if (way < 0.65) return waiting(locked({ timeout: between(1, settings.patience) }))
    if (way < 0.75) return waiting(acquired({ timeout: between(1, settings.patience), ttl: between(1500, 4000) }))
    if (way < 0.85) return waiting(Effect.timeoutOption(locked(), between(0, settings.patience)))
    if (way < 0.93) {
      return Effect.scoped(Effect.flatMap(Mutex.acquireIfAvailable(resource), (lease) => {
        if (Option.isNone(lease)) return Effect.void
        granted(lease.value)
        return bareWork(lease.value)
      }))
    }
    return Mutex.withLockIfAvailable(resource)((lease) => {
      granted(lease)
      return protectedWork(lease)
    })
  }

  const worker = once.pipe(
    Effect.catchTag("ProtocolError", (error) => Effect.die(error)),
    Effect.catchTag(["AcquireTimeout", "LeaseLost", "BackendError"], (error) => {
      note("failed", { error: error._tag === "LeaseLost" ? `LeaseLost ${error.reason._tag} ${error.id}` : error._tag })
      return error._tag === "AcquireTimeout" ? Effect.void : pause(50, 500)
    }),
    Effect.andThen(pause(0, settings.rest)),
    Effect.forever
  )

  /**
   * Contends for a random time, during which it leads, works, fails, steps down, stops and restarts. Then starts a new
   * contention.
   */
  const contend = Effect.gen(function*() {
    const resource = anyResource()
    const contention = yield* Mutex.contend(resource)
    let wait = ""
    const waited = Effect.sync(() => note("waited", { resource, wait }))
    const waiting = Effect.sync(() => {
      wait = `${number}.${++waits}`
      note("waiting", { resource, wait, recovery: contenderRecovery })
    })
    yield* Effect.addFinalizer(() => waited)
    yield* waiting
    const lead = contention.whileLeader((lease) =>
      Effect.gen(function*() {
        note("waited", { resource, wait, served: 1 })
        granted(lease)
        yield* Effect.onInterrupt(protectedWork(lease), () => waiting)
        if (random() < 0.5) return yield* Effect.fail("the work failed" as const)
        yield* Effect.andThen(waiting, contention.stepDown)
      }), { onError: "fail" })
    // Failed work does not end the leadership, so keep leading, step down, or stop and restart
    const leading = Effect.catch(lead, () =>
      Effect.suspend(() => {
        const how = random()
        if (how < 0.4) return Effect.void
        if (how < 0.7) return Effect.andThen(waiting, contention.stepDown)
        return Effect.andThen(contention.stop, Effect.andThen(waiting, contention.start))
      }))
    yield* Effect.timeoutOption(Effect.forever(leading), between(500, 12_000))
  }).pipe(
    Effect.scoped,
    Effect.catchTag(["InvalidName", "InvalidConfig"], (error) => Effect.die(error)),
    Effect.andThen(pause(0, settings.rest)),
    Effect.forever
  )

  /** Holds the mutex while alternating between CPU-bound work and yielding the fiber. */
  const crowded = (resource: string) =>
    Mutex.withLock(resource)((lease) => {
      const fields = { resource, id: lease.id }
      granted(lease)
      const step = Effect.andThen(client.compute([0, 2]), Effect.yieldNow)
      const round = Effect.andThen(Effect.repeat(step, { times: 2 }), Effect.sync(() => note("step", fields)))
      const rounds = Effect.timed(Effect.repeat(round, { times: 10 })).pipe(
        // Computing takes no virtual time after the faults
        Effect.flatMap(([took]) => Effect.sleep(Duration.toMillis(took) > 0 ? "20 millis" : "1 second")),
        Effect.repeat({ times: Math.floor(between(5, 200)) })
      )
      return Effect.acquireUseRelease(
        Effect.sync(() => note("begin", fields)),
        () => rounds,
        () =>
          Effect.sync(() => {
            note("stopped", fields)
            note("end", fields)
          })
      )
    }).pipe(
      Effect.catchTag("ProtocolError", (error) => Effect.die(error)),
      Effect.ignore,
      Effect.andThen(pause(0, settings.rest)),
      Effect.forever
    )

  return { worker, contend, crowded }
}

export const crowdOf = ({ crowd }: Settings) => Array.from({ length: crowd }, (_, index) => `crowd-${index + 1}`)

/** Runs all fibers in a process. */
export const busy = (client: Simulation.Client, settings: Settings) => {
  const workers = Array.from(
    { length: settings.workers },
    (_, index) => make(client, String(index + 1), settings).worker
  )
  const contenders = Array.from(
    { length: settings.contenders },
    (_, index) => make(client, `contender ${index + 1}`, settings).contend
  )
  const crowd = crowdOf(settings).map((resource, index) =>
    make(client, `crowd ${index + 1}`, settings).crowded(resource)
  )
  return Effect.all([...workers, ...contenders, ...crowd], { concurrency: "unbounded", discard: true })
}
