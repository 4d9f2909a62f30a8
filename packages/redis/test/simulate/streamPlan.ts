/**
 * The `streams` and `streams-crowd` plans for `pnpm simulate`: under faults, consumers share data streams while
 * producers announce and write them. Some seeds have Go consumers too.
 */
import * as RedisTopology from "@effect-simba/redis/RedisTopology"
import { RedisStreams } from "@effect-simba/redis/streams"
import { Checker, Simulation } from "@effect-simba/testkit"
import { StreamChecker } from "@effect-simba/testkit/streams"
import { Duration, Effect } from "effect"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { draws } from "./draws.ts"
import { staleOwnersAreRefused } from "./staleOwners.ts"
import { busy } from "./streamBehaviour.ts"
import {
  type Ailment,
  isDraft,
  keyOf,
  maxFailures,
  type Pace,
  service as serviceName,
  type Settings,
  type Uses,
  usesOf
} from "./streamSettings.ts"

type ServiceName = Parameters<typeof StreamKeys.input>[0]
type StreamName = Parameters<typeof StreamKeys.streamLease>[0]
type EntryId = Parameters<typeof StreamKeys.entryLease>[1]

const name = (stream: string) => stream as StreamName

const endings: ReadonlyArray<unknown> = ["Done", "AlreadyDone", "Released", "DeadLettered", "HandedOver"]

const identify = (stream: string, value: string) => `${stream}#${value.slice(value.lastIndexOf("@@") + 2)}`

/**
 * Returns the leases ended by a script. KEYS: LBS, failures, announced, dead letters, hand-overs, then five per lease,
 * the last of which is the data stream. ARGV: group, signals, then entry, consumer, value, token and further arguments
 * per lease.
 */
const releasedOf = (service: ServiceName): NonNullable<Simulation.LockModel["released"]> => (args, reply) => {
  const [command, , count] = args
  if (command !== "EVALSHA" && command !== "EVAL") return undefined
  if (args[7] !== StreamKeys.handOvers(service) || !Array.isArray(reply)) return undefined
  const first = 3 + Number(count) + 2
  const each = (args.length - first) / reply.length
  return reply.flatMap((one, i) => {
    const [stream, token] = [args[12 + 5 * i]!, args[first + i * each + 3]]
    return endings.includes(one) ? [{ resource: stream, id: `${stream}#${token}` }] : []
  })
}

/** Caches the latest result, because every checker asks about every owner changed by a command. */
const readOnce = (read: NonNullable<Simulation.LockModel["released"]>): typeof read => {
  let last: readonly [args: unknown, reply: unknown, found: ReturnType<typeof read>] = [undefined, undefined, undefined]
  return (args, reply) => {
    if (last[0] !== args || last[1] !== reply) last = [args, reply, read(args, reply)]
    return last[2]
  }
}

export const lockOf = (
  streams: ReadonlyMap<string, unknown>,
  service: string = serviceName
): Simulation.LockModel => ({
  resources: [...streams.keys()],
  ownerKey: (stream) => StreamKeys.streamLease(name(stream)),
  tokenKey: (stream) => StreamKeys.fence(name(stream)),
  identify,
  released: readOnce(releasedOf(service as ServiceName)),
  forced: forcedBy(streams),
  keep: (key, expires) =>
    key === StreamKeys.input(service as ServiceName) || streams.has(key) ||
    (expires && /^(simba:(fence|checkpoint|dead|dead-ids|failures|announced)|drafts-over):/.test(key))
})

const isScript = (args: ReadonlyArray<string>, length: number) =>
  (args[0] === "EVALSHA" || args[0] === "EVAL") && args[2] === "2" && args.length === length

/**
 * Recognizes an operator's successful seek by its empty entry. KEYS: streamLease, checkpoint. ARGV: leaseValue, entry,
 * and five more.
 */
const isSoughtByOperator = (args: ReadonlyArray<string>, reply: unknown) =>
  isScript(args, 12) && args[6] === "" && reply === "Moved"

/** Returns the owner that lost a data stream to a forced seek. */
const forcedBy = (streams: ReadonlyMap<string, unknown>): NonNullable<Simulation.LockModel["forced"]> => {
  const byLease = new Map([...streams.keys()].map((stream) => [StreamKeys.streamLease(name(stream)), stream]))
  return (args, reply) => {
    const stream = byLease.get(args[3] ?? "")
    const leaseValue = args[5] ?? ""
    if (stream === undefined || !isSoughtByOperator(args, reply) || leaseValue === "") return undefined
    return { resource: stream, id: identify(stream, leaseValue) }
  }
}

const fieldOf = (fields: ReadonlyArray<string>, name: string) => {
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) return fields[i + 1]
  return undefined
}

export const modelOf = ({ service: called, go, streams }: Settings): StreamChecker.Model => {
  const service = (called ?? serviceName) as ServiceName
  const byCheckpoint = new Map([...streams.keys()].map((stream) => [StreamKeys.checkpoint(name(stream)), stream]))
  const goClients = Array.from({ length: go }, (_, index) => `c${index + 1}`)
  return {
    streams: [...streams.keys()],
    input: StreamKeys.input(service),
    group: StreamKeys.group(service),
    deadLetters: StreamKeys.deadLetters(service),
    failures: StreamKeys.failures(service),
    members: StreamKeys.members(service),
    checkpoint: (stream) => StreamKeys.checkpoint(name(stream)),
    deadMessages: (stream) => StreamKeys.deadMessages(name(stream)),
    entryLease: (stream, entry) => StreamKeys.entryLease(name(stream), entry as EntryId),
    announcement: (fields) => /"DataStreamName":"([^"]*)"/.exec(fieldOf(fields, "lbs-input") ?? "")?.[1],
    deadId: (fields) => fieldOf(fields, "simba-id"),
    holder: (value) => value.split("@@")[0],
    isGoConsumer: (text) => goClients.includes(text) || text.startsWith("redis-consumer-"),
    isMark: (text) => text.startsWith("simba:given-after:"),
    paused: StreamKeys.paused(service),
    isDraft,
    keyOf,
    sought: (args, reply) => isSoughtByOperator(args, reply) ? byCheckpoint.get(args[4]!) : undefined,
    // KEYS: stream, checkpoint. ARGV: keep, which the operator leaves at 0. A call that reads a lag has the same keys.
    trimmed: (args) =>
      isScript(args, 6) && args[5] === "0" && byCheckpoint.get(args[4]!) === args[3] ? args[3] : undefined,
    isUndecodable: (fields) => fieldOf(fields, "n") === undefined
  }
}

/** Disables the server settings checks, because their commands would shift the random numbers of known seeds. */
const withoutChecks = Effect.provideService(RedisTopology.RedisTopology, { _tag: "Single", serverChecks: false })

export const program = (settings: Settings, on = RedisStreams.layerStore) => (client: Simulation.Client) =>
  withoutChecks(Effect.provide(busy(client, settings), on))

/** Maximum time from an outage to a consumer's next poll: the longest backoff plus the attempts. */
export const recovery = Duration.millis(6000 + 2000)

/** Slow and fast periods. The fast ones leave a fleet time to rebalance during the faults. */
const paces: ReadonlyArray<Pace> = [
  { leaseDuration: 2000, heartbeatInterval: 1000, sweepInterval: 2000, confirmTimeout: 1500 },
  { leaseDuration: 1500, heartbeatInterval: 400, sweepInterval: 1000, confirmTimeout: 700 }
]

/**
 * Maximum time until an orphan is taken: its owner's lease, a sweep by a member that must leave the orphan to others,
 * the next sweep, and a step of the server's clock that prolongs leases.
 */
const orphan = ({ sweepInterval: sweep }: Pace) => Duration.millis(2000 + 2 * 1.2 * sweep + 2000 + 1500)

/** The bound for Go consumers' orphans: an entry is left for 40 seconds to a Go consumer that has not locked it. */
const goOrphan = (pace: Pace) => Duration.sum(orphan(pace), Duration.seconds(40))

/** Maximum time that a silent member counts as alive. */
const settle = ({ confirmTimeout: confirm, heartbeatInterval: heartbeat, leaseDuration: lease }: Pace) =>
  Duration.millis(Math.max(4 * heartbeat, lease) + confirm + 500)

/** Minimum time that a consumer keeps a data stream received in a hand-over, even with the fastest allowed clock. */
const stay = ({ confirmTimeout: confirm, heartbeatInterval: heartbeat }: Pace) =>
  Duration.millis(10 * (confirm + 4 * heartbeat) / (1 + Simulation.allFaults.clockRate!))

/** Draws a fleet's load, without `uses`. */
export const plainLoadOf = (seed: number | string) => {
  const draw = draws(`streams/${seed}`)
  const pick = <A>(name: string, items: ReadonlyArray<A>) => items[Math.floor(draw(name) * items.length)]!
  const isCrowd = draw("crowd") < 0.004
  const mild = !isCrowd && draw("mild") < 0.3
  const go = mild || isCrowd ? 0 : pick("stock", [0, 0, 0, 1, 2])
  const consumers = pick("consumers", mild ? [2, 3, 4] : [1, 2, 3, 3, 4])
  const streams = new Map(
    Array.from({
      length: isCrowd ? pick("crowd size", [200, 200, 500, 2000]) : pick("streams", mild ? [6, 10] : [2, 4, 6, 10])
    }, (_, index) => {
      const stream = `s${index + 1}`
      const ailment = draw("ailing") < 0.5
        ? "none"
        : pick<Ailment>(stream, ["none", "none", "none", "fails", "hangs", "slow", "poison"])
      return [stream, ailment]
    })
  )
  const capacity = isCrowd ? streams.size : pick("capacity", mild ? [8, 64] : [1, 3, 8, 8, 64])
  // A redundant announcement occupies capacity until the data stream is deleted
  const hasRoom = capacity * consumers > streams.size
  const losses = !mild && !isCrowd && go === 0 && draw("losses") < 0.3
  const rounds = mild || isCrowd || go > 0 || !hasRoom ? 1 : pick("rounds", [1, 1, 2, 3])
  return {
    // Do not lose data in fleets with Go consumers, which do not notice the loss and finish data streams that nobody
    // has read
    losses,
    mild,
    hasOutages: !mild && draw("outages") < 0.15,
    settings: {
      streams,
      go,
      consumers,
      messages: isCrowd ? 4 : mild ? 50 : pick("messages", rounds > 1 ? [4, 10] : [4, 10, 25, 50]),
      rounds,
      checkpoint: (stream) => StreamKeys.checkpoint(name(stream)),
      capacity,
      pace: pick("pace", paces),
      late: mild ? 8000 : pick("late", [0, 0, 8000]),
      balance: mild || draw("balance") < 0.7,
      enableEvents: draw("events") < 0.5,
      grace: pick("grace", [0, 500, 2000]),
      commitEvery: pick("commit", [1, 1, 3]),
      stays: mild ? 60_000 : pick("stays", [3000, 8000, 30_000, 60_000]),
      freshIds: draw("ids") < 0.4,
      reapAfter: pick("reap", [4000, 60_000]),
      rest: mild ? 500 : pick("rest", [50, 500, 1500]),
      work: pick("work", [20, 200]),
      duplicates: pick("duplicates", hasRoom ? [0, 0, 0.5, 2] : [0, 0, 0.5]),
      malformed: draw("malformed") < 0.3,
      hasty: draw("hasty") < 0.5,
      // A Go consumer may finish a data stream before all its messages are written
      repeats: losses || go > 0 || !isCrowd && draw("repeats") < 0.3,
      ownOffsets: rounds === 1 && draw("own offsets") < 0.2,
      goWork: pick("stock work", [4000, 4000, 15_000]),
      deadLetterAfter: pick("dead letters", [0, 1000, 5000]),
      fenced: draw("fenced") < 0.5,
      unrenewed: pick("unrenewed", [0, 0, 0.1]),
      computes: pick("computes", [0, 2, 40])
    } satisfies Settings
  }
}

/** Draws a fleet's optional features. Half of the fleets use none. */
const usesIn = (seed: number | string, { losses, settings }: ReturnType<typeof plainLoadOf>): Uses | undefined => {
  const draw = draws(`uses/${seed}`)
  const { capacity, consumers, ownOffsets, rounds, go, streams } = settings
  if (draw("none") < 0.5 || losses || go > 0 || rounds > 1 || ownOffsets || streams.size > 20) return undefined
  const has = (name: string) => draw(name) < 0.3
  const after = has("after")
  const drafts = !after && has("drafts")
  const seeks = !after && !drafts && capacity * consumers > streams.size && has("seeks")
  return {
    handling: after ? "one" : (["one", "several", "batches"] as const)[Math.floor(draw("handling") * 3)]!,
    attempts: has("attempts") ? 3 : Infinity,
    after,
    // The announcement after a seek may occupy capacity until the data stream is deleted
    seeks,
    pauses: has("pauses"),
    // Seeks exclude trims, because a reader that starts before trimmed messages would wait for new ones
    trims: !seeks && has("trims"),
    deletes: has("deletes") ? 0.1 : 0,
    drafts
  }
}

export const loadOf = (seed: number | string): ReturnType<typeof plainLoadOf> & { readonly settings: Settings } => {
  const load = plainLoadOf(seed)
  return { ...load, settings: { ...load.settings, uses: usesIn(seed, load) } }
}

const { evict: _evict, failover: _failover, ...harmless } = Simulation.allFaults
const lossless: Simulation.Faults = { ...harmless, restart: { every: 15_000, loseData: 0 } }

/** Faults that rarely remove consumers from the fleet, which leaves time to rebalance. */
const { clog: _clog, partition: _partition, pause: _pause, suspend: _suspend, ...short } = lossless
const gentle: Simulation.Faults = { ...short, kill: { every: 20_000, lasts: [100, 5000] } }

/** Repeated outages, some of them longer than any lease. */
const outages: Simulation.Faults = {
  errorState: { every: 5000, lasts: [3000, 10_000], states: Simulation.allFaults.errorState!.states }
}

export interface Overrides extends Partial<Omit<Simulation.Options<never>, "program">> {
  readonly program?: ReturnType<typeof program>
}

/** An estimate of how long the consumers need for all messages, in milliseconds. */
const longestWork = ({ capacity, consumers, messages, rest, rounds, streams, work }: Settings) =>
  streams.size * rounds * messages * (rest + work) / (consumers * capacity)

/**
 * Builds a plan from settings. `losses` allows the server to lose data. With `mild`, faults rarely remove consumers
 * from the fleet.
 */
export const planOf = (
  seed: number | string,
  { hasOutages = false, losses, mild, settings }: {
    readonly losses: boolean
    readonly mild: boolean
    readonly hasOutages?: boolean
    readonly settings: Settings
  },
  overrides?: Overrides
) => {
  const { consumers, pace, reapAfter, go, streams } = settings
  return {
    seed,
    clients: go + consumers,
    program: program(settings),
    lock: lockOf(streams),
    faults: { ...(losses ? Simulation.allFaults : mild ? gentle : lossless), ...(hasOutages ? outages : {}) },
    checkers: [
      Checker.rules.oneOwner,
      Checker.rules.tokensGrow,
      Checker.rules.ensureIsTruthful,
      Checker.rules.workIsProtected,
      Checker.rules.workNeverOverlaps,
      Checker.rules.writesAreFenced,
      Checker.rules.releasedAfterWork,
      Checker.rules.nothingIsLeft,
      staleOwnersAreRefused((settings.service ?? serviceName) as ServiceName, [...streams.keys()]),
      ...StreamChecker.all(modelOf(settings), {
        orphan: orphan(pace),
        goOrphan: goOrphan(pace),
        recovery,
        settle: settle(pace),
        stay: stay(pace),
        reaped: Duration.millis(3 * reapAfter),
        maxFailures: settings.maxFailures ?? maxFailures,
        attempts: usesOf(settings).attempts
      })
    ],
    duration: "16 seconds",
    // Leave time for operators, who resume everything three seconds after the faults
    calm: "6 seconds",
    liveness: Duration.millis(Math.max(200_000, longestWork(settings))),
    closing: "20 seconds",
    ...overrides
  } as const
}

export const streamPlan = (seed: number | string, overrides?: Overrides) => planOf(seed, loadOf(seed), overrides)

/** Consumers that own many data streams and do CPU-bound work, which makes the timers of lost leases run late. */
export const streamCrowdPlan = (seed: number | string, overrides?: Overrides) => {
  const draw = draws(`stream crowd/${seed}`)
  const size = [40, 80, 150][Math.floor(draw("size") * 3)]!
  const crowded: Settings = {
    ...plainLoadOf(seed).settings,
    streams: new Map(Array.from({ length: size }, (_, index) => [`s${index + 1}`, "none"] as const)),
    go: 0,
    consumers: 2 + Math.floor(draw("consumers") * 2),
    capacity: size,
    messages: 10,
    rounds: 1,
    rest: 500,
    work: 20,
    computes: 40,
    duplicates: 0,
    malformed: false,
    repeats: false,
    ownOffsets: false
  }
  const base = planOf(seed, { losses: false, mild: false, settings: crowded })
  const enabled = Object.keys(base.faults ?? {}).filter((name) => name === "processor" || draw(name) < 0.4)
  return {
    ...base,
    enabled: enabled as ReadonlyArray<keyof Simulation.Faults>,
    faults: { ...base.faults, processor: { ...Simulation.allFaults.processor!, task: [0.005, 0.1, 0.5] } },
    ...overrides
  } as const
}
