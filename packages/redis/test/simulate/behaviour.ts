/** What the processes of a simulated fleet do with mutexes: they wait, work, contend and write in every way. */
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
 * - `rest`: the longest pause between two acts, in milliseconds. `patience`: the longest timeout.
 * - `workers`, `contenders`: how many fibers acquire and release, and how many contend for a long time.
 * - `holds`: the longest usual work, in milliseconds.
 * - `forces`: how many acts are forced releases instead, between 0 and 1; some come right after a grant.
 * - `writes`: whether work writes to resources that check tokens, one in the same Redis and one outside; `careless`
 * ones do not check.
 * - `localTurn`: for how long a turn serves fiber after fiber of one process, in milliseconds.
 * - `countsSubscribers`: whether dead waiters can be skipped; on a Cluster they cannot.
 * - `coalescing`: whether the requests of one turn are sent in one call.
 * - `crowd`: how many further mutexes there are, each of which every process wants for long work that uses its
 * processor.
 * - `computes`: the longest computation of a step of work, in milliseconds; it takes time if processors do.
 * - `throws`: whether the tracer and the logger throw occasionally.
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

/** The key to which work writes its token. */
export const fencedKey = (resource: string) => `fenced:{${resource}}`

/** A contender that could not acquire rests before it retries: twice as long each time. */
const contenderRecovery = 1000 + 10_000 * 1.2

const make = (client: Simulation.Client, number: string, settings: Settings) => {
  const { note, random } = client
  const between = (low: number, high: number) => low + (high - low) * random()
  const pause = (low: number, high: number) => Effect.suspend(() => Effect.sleep(Duration.millis(between(low, high))))
  const anyResource = () => settings.resources[Math.floor(random() * settings.resources.length)]!
  const compute = client.compute([0, settings.computes])
  let waits = 0
  let writes = 0

  /** Reads the time left before it sends the request: a yield in between may take time. */
  const ensured = (lease: Lease.Lease) =>
    Effect.flatMap(
      lease.timeLeft,
      (left) =>
        Effect.map(lease.ensure, () =>
          note("ensured", { resource: lease.mutex, id: lease.id, left: Duration.toMillis(left) }))
    )

  const granted = (lease: Lease.Lease) => note("granted", { resource: lease.mutex, id: lease.id, token: lease.token })

  /** Usually short, sometimes longer than several renewals. */
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

  /** A resource outside of Redis that remembers the largest token, and refuses smaller ones. */
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

  /** An interruption between the first note and the last would leave work without an end. */
  const protectedWork = (lease: Lease.Lease) => {
    const fields = { resource: lease.mutex, id: lease.id }
    return Effect.acquireUseRelease(
      Effect.sync(() => note("begin", fields)),
      () => steps(() => Effect.andThen(Effect.sync(() => note("step", fields)), write(lease)), 20, 300),
      () => {
        note("stopped", fields)
        // Finalizers belong to the work
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

  /** When a grant is announced: its holder may not have confirmed it yet. */
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
    // After a request of this process: its message may overtake the reply
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
    // An interruption between the first note and the wait would leave a wait without an end
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

  /** Takes part for a while: leads, works, fails, steps down, stops and starts; then another takes its place. */
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
    // A failure does not affect the leadership: it continues to lead, or lets another do so
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

  /** Computes and yields repeatedly for as long as it holds the mutex. */
  const crowded = (resource: string) =>
    Mutex.withLock(resource)((lease) => {
      const fields = { resource, id: lease.id }
      granted(lease)
      const step = Effect.andThen(client.compute([0, 2]), Effect.yieldNow)
      const round = Effect.andThen(Effect.repeat(step, { times: 2 }), Effect.sync(() => note("step", fields)))
      const rounds = Effect.timed(Effect.repeat(round, { times: 10 })).pipe(
        // Once faults are over, computing takes no time
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

/** Everything that one process does. */
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
