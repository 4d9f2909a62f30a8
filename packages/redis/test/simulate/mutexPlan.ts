/**
 * The standard plan of the mutex: a few processes, each with a few fibers, use a few mutexes in every way there is,
 * under every fault there is. The plain plan does without what came later: unfair holders, contenders that stay, writes
 * under a fence, and servers that cannot tell whether somebody listens.
 */
import { Mutex, MutexName } from "@effect-simba/core"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { RedisMutexStore } from "@effect-simba/redis"
import { Checker, Simulation } from "@effect-simba/testkit"
import { Duration, Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { CommandSink, overRedis } from "../../src/internal/client/commandSink.ts"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"
import { busy, confirm, fencedKey, type Settings, transition, ttl } from "./behaviour.ts"
import { draws } from "./draws.ts"
import { type Operation, operationsOf } from "./operations.ts"

const resources = ["a", "b", "c"]

const name = (resource: string) => resource as Parameters<typeof RedisKeys.owner>[0]
const ownerKeys = new Map(resources.map((resource) => [RedisKeys.owner(name(resource)), resource]))

const partiesOf = (args: ReadonlyArray<string>, reply: unknown, kind: Operation["kind"]) =>
  operationsOf(args, reply).flatMap((operation) => {
    const resource = ownerKeys.get(operation.ownerKey)
    return operation.kind === kind && resource !== undefined ? [{ ...operation, resource }] : []
  })

/** The place that a reply names: that of an acquire that was refused, or of an attempt that a release queued. */
const placeOf = ({ kind, reply }: Operation): number | undefined => {
  if (!Array.isArray(reply) || reply[0] === "error") return undefined
  const [, ticket, token] = reply as ReadonlyArray<string>
  return ticket === "" || (kind === "release" && token !== "") ? undefined : Number(ticket)
}

/** The keys and arguments of the script that takes by force, whose reply is the ownership before. */
const forcedBy = (args: ReadonlyArray<string>, reply: unknown) => {
  const resource = args[2] === "4" && args.length === 9 ? ownerKeys.get(args[3]!) : undefined
  const end = typeof reply === "string" ? reply.lastIndexOf("@@") : -1
  return resource === undefined || end <= 0 ? [] : [{ resource, id: (reply as string).slice(0, end) }]
}

/** Under the ids that they queue. */
const requeuedBy = (args: ReadonlyArray<string>, reply: unknown) =>
  partiesOf(args, reply, "release")
    .filter(({ requeue }) => requeue !== "")
    .map((operation) => ({ ...operation, id: operation.requeue }))

/** How the mutex looks on the server. */
export const lock: Simulation.LockModel = {
  resources,
  ownerKey: (resource) => RedisKeys.owner(name(resource)),
  tokenKey: (resource) => RedisKeys.fence(name(resource)),
  channel: (resource, id) => {
    const layer = MutexName.inboxOf(id)
    return layer === "" ? RedisKeys.contenderChannel(name(resource), id) : RedisKeys.inboxChannel(layer)
  },
  fencedKey,
  asked: (args, reply) => [
    ...partiesOf(args, reply, "acquire"),
    ...requeuedBy(args, reply).map((operation) => ({ ...operation, unfair: false }))
  ],
  queued: (args, reply) =>
    [...partiesOf(args, reply, "acquire"), ...requeuedBy(args, reply)].flatMap((operation) => {
      const place = placeOf(operation)
      return place === undefined ? [] : [{ resource: operation.resource, id: operation.id, place }]
    }),
  released: (args, reply) => reply instanceof Error ? undefined : partiesOf(args, reply, "release"),
  forced: forcedBy,
  keep: (key, expires) =>
    key.startsWith("fenced:") || (expires && (key.endsWith(":fence") || key.endsWith(":contender")))
}

/** As on a Cluster, where a count of subscribers is that of one node. */
const uncounted = Layer.effect(Subscriber, Effect.map(Subscriber, (real) => ({ ...real, countable: false })))

/** As over ioredis: what is asked for in one turn goes out in one call. */
const coalescing = Layer.effect(
  CommandSink,
  Effect.flatMap(Redis, (redis) => overRedis(redis, { coalescing: true }))
)

export const program = (settings: Settings, on = RedisMutexStore.layer) => (client: Simulation.Client) => {
  const counted = settings.countsSubscribers ? on : on.pipe(Layer.provide(uncounted))
  const store = settings.coalescing ? counted.pipe(Layer.provide(coalescing)) : counted
  const contender = `${client.name}.${client.generation}`
  const mutex = Mutex.layer({
    ttl,
    transition,
    confirmTimeout: confirm,
    contender,
    maxLocalHandOffs: settings.handovers
  })
  return Effect.provide(busy(client, settings), Layer.provide(mutex, store))
}

/** A confirm period, another over which looks are spread, and a hint or a command that has to be sent again. */
const sleepBound = 2 * confirm + 700

/** The command timeout of a client, and the longest pause before it tries again. */
export const recovery = Duration.millis(1000 + 1200)

/** The longest lease that a waiter may still believe in, and then the same. */
const sleepBoundAfterLoss = Duration.millis(4000 + transition + 2 * confirm + 700)

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
      patience: pick("patience", [500, 2000, 10_000]),
      contenders: pick("contenders", [0, 0, 1, 2]),
      unfair: pick("unfair", [0, 0, 0.1, 0.4]),
      forces: pick("forces", [0, 0, 0.05, 0.2]),
      writes: pick<Settings["writes"]>("writes", ["none", "fenced"]),
      handovers: pick("handovers", [0, 0, 1, 8]),
      countsSubscribers: pick("counts", [true, true, true, true, false]),
      coalescing: pick("coalescing", [true, true, false])
    } satisfies Settings
  }
}

/** What the ids of one layer have in common. */
export const line = (id: string): string => MutexName.inboxOf(id) || id

const plan = (seed: number | string, clients: number, settings: Settings) =>
  ({
    seed,
    clients,
    program: program(settings),
    // The waiters of one process stand in one line, and have one place in the fleet's queue
    lock: { ...lock, line, reserve: settings.handovers },
    faults: Simulation.allFaults,
    checkers: [
      Checker.inOrderWithinLines,
      ...Checker.all({
        // Behind unfair holders, a waiter that was woken and says nothing costs the next one two confirm periods
        sleepBound: Duration.millis(sleepBound + (settings.unfair > 0 ? confirm : 0)),
        sleepBoundAfterLoss,
        recovery
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
    unfair: 0,
    forces: 0,
    handovers: 0,
    writes: "none" as const,
    countsSubscribers: true,
    coalescing: true
  }
  return { ...plan(seed, clients, plain), ...overrides }
}
