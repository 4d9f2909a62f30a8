/**
 * The mutex plans for `pnpm simulate`, each a function of a seed. `mutex` runs up to five processes with up to three
 * mutexes under every fault. `plain` omits contenders, forced releases, shared turns, fenced writes and servers that
 * cannot count subscribers. `crowd` holds many mutexes per process. `careless` has intentional violations.
 */
import { Mutex } from "@effect-simba/core"
import type * as MutexStore from "@effect-simba/core/MutexStore"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { RedisMutex } from "@effect-simba/redis"
import { Checker, Simulation } from "@effect-simba/testkit"
import { Duration, Effect, Layer, Logger, References, Tracer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { CommandSink } from "../../src/internal/client/commandSink.ts"
import * as lockModel from "../../src/internal/mutex/lockModel.ts"
import { coalescing } from "../support/commandSink.ts"
import { busy, confirm, crowdOf, fencedKey, type Settings, transition, ttl } from "./behaviour.ts"
import { draws } from "./draws.ts"
import { forcedReleasesAreHeard } from "./forcedReleases.ts"
import { turnsEnd } from "./localTurns.ts"

const resources = ["a", "b", "c"]

/** Describes how the server stores mutexes. */
const lockOf = (resources: ReadonlyArray<string>) => ({
  ...lockModel.make(resources),
  fencedKey,
  keep: (key: string, expires: boolean) =>
    key.startsWith("fenced:") || (expires && (key.endsWith(":fence") || key.endsWith(":contender")))
} satisfies Simulation.LockModel)

export const lock = lockOf(resources)

/** Makes subscribers uncountable, as on a Cluster, where a node counts only its own subscribers. */
const uncounted = Layer.effect(Subscriber, Effect.map(Subscriber, (real) => ({ ...real, countable: false })))

/** Sends the requests from one event-loop turn in one call, as with ioredis. */
const coalescingLayer = Layer.effect(CommandSink, Effect.flatMap(Redis, coalescing))

/** A tracer and a logger that sometimes throw, which may lose nothing but spans and log lines. */
const throwing = ({ random }: Simulation.Client) => {
  const maybe = (what: string) => {
    if (random() < 0.2) throw new Error(`${what} throws`)
  }
  const tracer = Tracer.make({
    span: (options) => {
      maybe("the beginning of a span")
      const span = new Tracer.NativeSpan(options)
      const [end, attribute] = [span.end.bind(span), span.attribute.bind(span)]
      span.end = (...args) => (maybe("the end of a span"), end(...args))
      span.attribute = (...args) => (maybe("an attribute"), attribute(...args))
      return span
    }
  })
  return Layer.mergeAll(
    Layer.succeed(Tracer.Tracer, tracer),
    Layer.succeed(References.MinimumLogLevel, "Trace"),
    Logger.layer([Logger.make(() => maybe("a logger"))])
  )
}

/** A process's program. Tests pass a defective store (`on`) or defective mutexes, which the checkers must detect. */
export const program = (
  settings: Settings,
  on: Layer.Layer<MutexStore.MutexStore, Layer.Error<typeof RedisMutex.layerStore>, Redis | Subscriber> =
    RedisMutex.layerStore,
  mutexes: (options: Mutex.Options) => Layer.Layer<
    Mutex.Mutex,
    Layer.Error<ReturnType<typeof Mutex.layer>>,
    MutexStore.MutexStore | Redis
  > = Mutex.layer
) =>
(client: Simulation.Client) => {
  const counted = settings.countsSubscribers ? on : on.pipe(Layer.provide(uncounted))
  const store = settings.coalescing ? counted.pipe(Layer.provide(coalescingLayer)) : counted
  const processName = `${client.name}.${client.generation}`
  const mutex = mutexes({
    ttl,
    transition,
    confirmTimeout: confirm,
    processName,
    localTurn: settings.localTurn
  })
  const everything = Layer.provide(mutex, store)
  return Effect.provide(
    busy(client, settings),
    settings.throws ? Layer.provideMerge(everything, throwing(client)) : everything
  )
}

/** 4000 is the maximum `ttl` for a single request in `behaviour.ts`. */
const bounds = Effect.runSync(lockModel.bounds({ ttl: 4000, transition, confirmTimeout: confirm }))

/** The maximum lease on the server, in milliseconds. */
const longestLease = 4000 + transition

export const { recovery } = bounds

/** Draws a fleet's load. Idle fleets reveal different defects than busy ones. */
export const loadOf = (seed: number | string) => {
  const draw = draws(seed)
  const pick = <A>(name: string, items: ReadonlyArray<A>) => items[Math.floor(draw(name) * items.length)]!
  return {
    clients: pick("clients", [2, 3, 4, 4, 5]),
    settings: {
      resources: resources.slice(0, pick("resources", [1, 2, 3])),
      workers: pick("workers", [1, 2, 2, 3]),
      rest: pick("rest", [50, 300, 2000, 6000]),
      patience: pick("patience", [500, 2000, 10_000]),
      contenders: pick("contenders", [0, 0, 1, 2]),
      holds: 400,
      forces: pick("forces", [0, 0, 0.05, 0.2]),
      writes: pick<Settings["writes"]>("writes", ["none", "fenced"]),
      localTurn: pick("localTurn", [0, 10, 10, 200, 2000]),
      countsSubscribers: pick("counts", [true, true, true, true, false]),
      coalescing: pick("coalescing", [true, true, false]),
      crowd: 0,
      computes: pick("computes", [0, 2, 60]),
      throws: pick("throws", [true, false, false])
    } satisfies Settings
  }
}

/** All faults except `processor`, so computing takes no virtual time. */
export const { processor: _processor, ...withoutProcessors } = Simulation.allFaults

const allFaults = Simulation.allFaults as Simulation.Faults & Required<Pick<Simulation.Faults, "processor" | "suspend">>

/** Commands may hang for as long as the longest lease. */
export const hang = { chance: 0.005, lasts: longestLease }

const plan = (seed: number | string, clients: number, settings: Settings) =>
  ({
    seed,
    clients,
    program: program(settings),
    lock: lockOf([...resources, ...crowdOf(settings)]),
    faults: { ...allFaults, hang, suspend: { ...allFaults.suspend, lasts: [1000, 20_000] } },
    checkers: [
      Checker.rules.inOrderWithinLines,
      forcedReleasesAreHeard({ within: 300, recovery: Duration.toMillis(bounds.recovery) }),
      turnsEnd(settings),
      ...Checker.all({
        ...bounds
      })
    ],
    duration: "16 seconds",
    calm: "3 seconds",
    liveness: "90 seconds",
    closing: "20 seconds"
  }) as const

export interface Overrides extends Partial<Omit<Simulation.Options<never>, "program">> {
  readonly program?: ReturnType<typeof program>
}

export const mutexPlan = (seed: number | string, overrides?: Overrides) => {
  const { clients, settings } = loadOf(seed)
  return { ...plan(seed, clients, settings), ...overrides }
}

export const plainPlan = (seed: number | string, overrides?: Overrides) => {
  const { clients, settings } = loadOf(seed)
  const plain = {
    ...settings,
    contenders: 0,
    forces: 0,
    localTurn: 0,
    writes: "none" as const,
    countsSubscribers: true,
    coalescing: true,
    throws: false
  }
  return { ...plan(seed, clients, plain), ...overrides }
}

/**
 * A plan that shows what a failure looks like: processes are paused and write to resources that do not check tokens.
 */
export const carelessPlan = (seed: number | string, overrides?: Overrides) => {
  const { settings } = loadOf(seed)
  const resources = settings.resources.slice(0, 1)
  const careless = {
    ...settings,
    resources,
    workers: 2,
    contenders: 0,
    rest: 50,
    holds: 3000,
    forces: 0,
    handovers: 0,
    writes: "careless" as const,
    throws: false
  }
  return mutexPlan(seed, {
    clients: 3,
    program: program(careless),
    // Pauses outlast leases, so another process writes before the paused one resumes its work
    faults: { ...allFaults, pause: { every: 1500, lasts: [5000, 7000] } },
    enabled: ["pause", "requestDelay"],
    duration: "30 seconds",
    ...overrides
  })
}

/** Processes that hold many mutexes and do CPU-bound work, which makes the timers of lost leases run late. */
export const crowdPlan = (seed: number | string, overrides?: Overrides) => {
  const draw = draws(`crowd/${seed}`)
  const { settings } = loadOf(seed)
  const crowded = {
    ...settings,
    workers: 1,
    contenders: 0,
    forces: 0,
    localTurn: 0,
    writes: "none" as const,
    crowd: [40, 60, 100, 200][Math.floor(draw("crowd") * 4)]!,
    countsSubscribers: true,
    throws: false
  }
  const base = plan(seed, 2 + Math.floor(draw("clients") * 2), crowded)
  const enabled = Object.keys(base.faults).filter((name) => name === "processor" || draw(name) < 0.4)
  return {
    ...base,
    enabled: enabled as ReadonlyArray<keyof Simulation.Faults>,
    // Every task takes CPU time
    faults: { ...base.faults, processor: { ...base.faults.processor, task: [0.005, 0.1, 0.5] } },
    liveness: "200 seconds",
    ...overrides
  } as const
}
