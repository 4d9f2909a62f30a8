/**
 * The standard plan of the mutex: a few processes, each with a few fibers, use a few mutexes in every way there is,
 * under every fault there is.
 */
import { Mutex } from "@effect-simba/core"
import type { Lease } from "@effect-simba/core"
import { RedisKeys, RedisMutexStore } from "@effect-simba/redis"
import { Checkers, Simulation } from "@effect-simba/testkit"
import { Duration, Effect, Layer, Option } from "effect"

const ttl = 2000
const transition = 2500
const confirm = 500

const resources = ["a", "b", "c"]

const name = (resource: string) => resource as Parameters<typeof RedisKeys.owner>[0]
const ownerKeys = new Map(resources.map((resource) => [RedisKeys.owner(name(resource)), resource]))

/** The two scripts that name the four keys of one mutex: acquire has a mode behind the id, release has none. */
const scriptOf = (args: ReadonlyArray<string>) =>
  (args[0] !== "EVALSHA" && args[0] !== "EVAL") || args[2] !== "4"
    ? undefined
    : args[8] === "try" || args[8] === "wait"
    ? "acquire"
    : "release"

/** How the mutex looks on the server. */
export const lock: Simulation.LockModel = {
  resources,
  ownerKey: (resource) => RedisKeys.owner(name(resource)),
  tokenKey: (resource) => RedisKeys.fence(name(resource)),
  channel: (resource, id) => RedisKeys.contenderChannel(name(resource), id),
  queued: (args, reply) => {
    if (scriptOf(args) !== "acquire" || args[8] !== "wait" || !Array.isArray(reply)) return undefined
    const [, token, ticket] = reply as ReadonlyArray<string>
    const resource = ownerKeys.get(args[3]!)
    return resource === undefined || token !== "" || ticket === ""
      ? undefined
      : { resource, id: args[7]!, place: Number(ticket) }
  },
  released: (args, reply) => {
    if (scriptOf(args) !== "release" || reply instanceof Error) return undefined
    const resource = ownerKeys.get(args[3]!)
    return resource === undefined ? undefined : { resource, id: args[7]! }
  },
  keep: (key, expires) => expires && (key.endsWith(":fence") || key.endsWith(":contender"))
}

/** `rest`: the longest pause between two acts, in milliseconds. `patience`: the longest timeout. */
interface Settings {
  readonly resources: ReadonlyArray<string>
  readonly workers: number
  readonly rest: number
  readonly patience: number
}

const worker = (client: Simulation.Client, number: number, settings: Settings) => {
  const { note, random } = client
  const between = (low: number, high: number) => low + (high - low) * random()
  const pause = (low: number, high: number) => Effect.suspend(() => Effect.sleep(Duration.millis(between(low, high))))
  let waits = 0

  const ensured = (lease: Lease.Lease) =>
    Effect.flatMap(
      lease.ensure,
      () =>
        Effect.map(lease.timeLeft, (left) =>
          note("ensured", { resource: lease.mutex, id: lease.id, left: Duration.toMillis(left) }))
    )

  const granted = (lease: Lease.Lease) => note("granted", { resource: lease.mutex, id: lease.id, token: lease.token })

  /** Mostly short, at times longer than several renewals. */
  const steps = (each: () => Effect.Effect<void, never>, low: number, high: number) =>
    Effect.gen(function*() {
      const end = random() < 0.1 ? between(ttl, 4 * ttl) : between(5, 400)
      for (let passed = 0; passed < end;) {
        const step = Math.min(end - passed, between(low, high))
        passed += step
        yield* Effect.sleep(Duration.millis(step))
        yield* each()
      }
    })

  const protectedWork = (lease: Lease.Lease) =>
    Effect.suspend(() => {
      const fields = { resource: lease.mutex, id: lease.id }
      note("begin", fields)
      return steps(() => Effect.sync(() => note("step", fields)), 20, 300).pipe(
        Effect.ensuring(Effect.suspend(() =>
          // Finalizers belong to the work
          Effect.andThen(
            random() < 0.2 ? Effect.sleep("5 millis") : Effect.void,
            Effect.sync(() => note("end", fields))
          )
        ))
      )
    })

  const bareWork = (lease: Lease.Lease) =>
    Effect.gen(function*() {
      yield* ensured(lease)
      const end = random() < 0.15 ? between(ttl, 3 * ttl) : between(5, 500)
      for (let passed = 0; passed < end;) {
        const step = between(10, 400)
        passed += step
        yield* Effect.sleep(Duration.millis(step))
        yield* ensured(lease)
      }
      if (random() < 0.2) yield* lease.protect(protectedWork(lease))
    })

  const once = Effect.suspend(() => {
    const resource = settings.resources[Math.floor(random() * settings.resources.length)]!
    const wait = `${number}.${++waits}`
    const waited = (lease: Lease.Lease) => {
      note("waited", { resource, wait })
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
    const waiting = <A, E, R>(effect: Effect.Effect<A, E, R>) => {
      note("waiting", { resource, wait })
      return Effect.ensuring(effect, Effect.sync(() => note("waited", { resource, wait })))
    }
    const way = random()
    if (way < 0.35) return waiting(locked())
    if (way < 0.55) return waiting(acquired())
    if (way < 0.65) return waiting(locked({ timeout: between(1, settings.patience) }))
    if (way < 0.75) return waiting(acquired({ timeout: between(1, settings.patience), ttl: between(1500, 4000) }))
    if (way < 0.85) return waiting(Effect.timeoutOption(locked(), between(0, settings.patience)))
    if (way < 0.93) {
      return Effect.scoped(Effect.flatMap(Mutex.tryAcquire(resource), (lease) => {
        if (Option.isNone(lease)) return Effect.void
        granted(lease.value)
        return bareWork(lease.value)
      }))
    }
    return Mutex.withLockIfAvailable(resource)((lease) => {
      granted(lease)
      return protectedWork(lease)
    })
  })

  return once.pipe(
    Effect.catchTag("ProtocolError", (error) => Effect.die(error)),
    Effect.catchTag(["AcquireTimeout", "LeaseLost", "BackendError"], (error) => {
      note("failed", { error: error._tag === "LeaseLost" ? `LeaseLost ${error.reason} ${error.id}` : error._tag })
      return error._tag === "AcquireTimeout" ? Effect.void : pause(50, 500)
    }),
    Effect.andThen(pause(0, settings.rest)),
    Effect.forever
  )
}

export const program = (settings: Settings) => (client: Simulation.Client) =>
  Effect.all(
    Array.from({ length: settings.workers }, (_, index) => worker(client, index + 1, settings)),
    { concurrency: "unbounded", discard: true }
  ).pipe(
    Effect.provide(
      Mutex.layer({ ttl, transition, confirm, contender: `${client.name}.${client.generation}` }).pipe(
        Layer.provide(RedisMutexStore.layer)
      )
    )
  )

/** A confirm period, another over which looks are spread, and a hint or a command that has to be sent again. */
const sleepBound = Duration.millis(2 * confirm + 700)

/** The command timeout of a client, and the longest pause before it tries again. */
export const recovery = Duration.millis(1000 + 1200)

/** The longest lease that a waiter may still believe in, and then the same. */
const sleepBoundAfterLoss = Duration.millis(4000 + transition + 2 * confirm + 700)

/** A number in [0, 1) for each name, the same for the same seed. */
const draws = (seed: number | string) => (name: string) => {
  let hash = 2166136261
  for (const char of `${seed}/${name}`) hash = Math.imul(hash ^ char.charCodeAt(0), 16777619)
  hash = Math.imul(hash ^ hash >>> 15, 2246822507)
  return ((hash ^ hash >>> 13) >>> 0) / 4294967296
}

/** Busy fleets find other mistakes than idle ones do, so the load is drawn too. */
export const loadOf = (seed: number | string) => {
  const draw = draws(seed)
  const pick = <A>(name: string, items: ReadonlyArray<A>) => items[Math.floor(draw(name) * items.length)]!
  return {
    clients: pick("clients", [2, 3, 4, 4, 5]),
    settings: {
      resources: resources.slice(0, pick("resources", [1, 2, 3])),
      workers: pick("workers", [1, 2, 2, 3]),
      rest: pick("rest", [50, 300, 2000, 6000]),
      patience: pick("patience", [500, 2000, 10_000])
    }
  }
}

export const mutexPlan = (seed: number | string, overrides?: Partial<Simulation.Options<never>>) => {
  const { clients, settings } = loadOf(seed)
  return {
    seed,
    clients,
    program: program(settings),
    lock,
    faults: Simulation.allFaults,
    checkers: Checkers.all({ sleepBound, sleepBoundAfterLoss, recovery }),
    duration: "16 seconds",
    calm: "3 seconds",
    liveness: "90 seconds",
    closing: "20 seconds",
    ...overrides
  } as const
}
