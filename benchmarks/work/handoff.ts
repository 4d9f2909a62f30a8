/**
 * Measures the time from a release to the next grant, and throughput, with a constant number of contenders for one
 * mutex.
 */
import { Effect, type Scope } from "effect"
import { RedisServer } from "../../packages/redis/test/support/redisServer.ts"
import type { Agent, AgentError } from "../lib/agent.ts"
import { type Bench, type Entrant, ours, type Outcome, raw, variantOf } from "../lib/bench.ts"
import type { Connect } from "../lib/contestant.ts"
import { type HandOffs, handOffs } from "../lib/handoffs.ts"
import * as Proxy from "../lib/proxy.ts"
import * as Row from "../lib/row.ts"
import { median, quantile, rounded } from "../lib/statistics.ts"
import { once, warmUpMillis } from "../lib/warmUp.ts"

/** Long enough for the contender that has just released the mutex to queue again. */
export const holdMillis = 2

/** Waits until all contenders have queued. */
export const settling = (contenders: number): Effect.Effect<void> => Effect.sleep(150 + contenders)

let round = 0
/** Returns an unused mutex name. */
export const freshName = (label: string): string => `${label}-${++round}`

export interface Contention {
  readonly name: string
  /** The number of contenders in each process. */
  readonly contenders: number
  /** The number of places in the queue for each process. Default: one for each contender. */
  readonly places?: number
  readonly holdMillis: number
  /** An additional wait after all contenders have queued. Default: none. */
  readonly calmMillis?: number
}

/** The hand-offs within a period, and the CPU time of the processes. */
export interface Contended extends HandOffs {
  readonly seconds: number
  readonly cpuMicros: number
}

/** Observes contenders for some milliseconds. `during` may take further measurements at the start and the end. */
export type Watch = (
  millis: number,
  during?: (wait: Effect.Effect<void>) => Effect.Effect<void>
) => Effect.Effect<Contended, AgentError>

/** Lets several agents contend for one mutex until the scope closes. */
export const contention = Effect.fnUntraced(function*(
  agents: ReadonlyArray<Agent>,
  { calmMillis = 0, contenders, holdMillis, name, places = contenders }: Contention
): Effect.fn.Return<Watch, AgentError, Scope.Scope> {
  const each = <A>(ask: (agent: Agent) => Effect.Effect<A, AgentError>) => Effect.forEach(agents, ask)
  yield* Effect.addFinalizer(() =>
    Effect.forEach(agents, (agent) => Effect.ignore(agent.ask("stopContending")), { concurrency: "unbounded" })
  )
  const announces = agents.length > 1
  for (const agent of agents) agent.introduce(agents.filter((other) => other !== agent))
  const request = { name, contenders, places, mutexes: 1, holdMillis, announces }
  yield* each((agent) => agent.ask("contend", request))
  yield* Effect.andThen(settling(contenders), Effect.sleep(calmMillis))
  return (millis, during = (wait) => wait) =>
    Effect.gen(function*() {
      yield* each((agent) => agent.ask("startMeter", { stalls: false }))
      yield* each((agent) => agent.ask("taken"))
      yield* during(Effect.sleep(millis))
      const logs = yield* each((agent) => agent.ask("taken"))
      const spent = yield* each((agent) => agent.ask("readMeter"))
      return {
        ...handOffs(logs),
        seconds: millis / 1000,
        cpuMicros: spent.reduce((sum, { cpuMillis }) => sum + 1000 * cpuMillis, 0)
      }
    })
})

/**
 * Hands over a mutex with empty bodies, effect-simba and raw some 10,000 times or more, and then with holds, during
 * which V8 replaces the code that it has optimized for empty bodies.
 */
export const warmUp = Effect.fnUntraced(function*(agents: ReadonlyArray<Agent>, isShared = false) {
  const contenders = 10
  const places = isShared ? 1 : contenders
  const handOver = Effect.fnUntraced(function*(holdMillis: number, millis: number) {
    const watch = yield* contention(agents, { contenders, places, holdMillis, name: freshName("warm-up") })
    yield* watch(millis)
  }, Effect.scoped)
  yield* handOver(0, warmUpMillis)
  yield* handOver(holdMillis, 2 * warmUpMillis)
})

/** Returns an entrant's processes, warmed up. */
const warmAgents = Effect.fnUntraced(function*(
  bench: Bench,
  entrant: Entrant,
  connect: Partial<Connect>,
  processes: number,
  isShared = false
) {
  const connected = (connect: Partial<Connect>) =>
    Effect.forEach(Array.from({ length: processes }), (_, i) => bench.agent(entrant, connect, i + 1))
  const { localTurn, protocol, setting } = entrant
  const { isCluster = false } = connect
  const path = `hand-off ${JSON.stringify({ protocol, setting, localTurn, isCluster, isShared, processes })}`
  // Over a slow link, warming up would take too long
  const direct = isCluster ? connect : {}
  yield* once(
    yield* connected(connect),
    path,
    Effect.flatMap(connected(direct), (agents) => warmUp(agents, isShared))
  )
  return yield* connected(connect)
})

/**
 * With at least this many contenders, starting and stopping takes longer than the measurement, so the repetitions are
 * windows of one long run.
 */
export const crowd = 1000

/** Measures in a process that ends with the scope, because polling peers cannot be stopped. */
export const crowded = Effect.fnUntraced(function*(
  bench: Bench,
  entrant: Entrant,
  connect: Partial<Connect>,
  contended: Contention
) {
  const agent = yield* bench.freshAgent(entrant, connect)
  yield* warmUp([agent])
  const watch = yield* contention([agent], contended)
  yield* Effect.addFinalizer(() => agent.kill)
  return watch
})

const details = (outcomes: ReadonlyArray<Outcome<HandOffs>>) =>
  Object.fromEntries(outcomes.map(({ entrant, samples }) => {
    const all = samples.flatMap(({ millis }) => millis)
    const sum = (of: (sample: HandOffs) => number) => samples.reduce((sum, sample) => sum + of(sample), 0)
    return [entrant.name, {
      handOffs: all.length,
      p99: rounded(quantile(all, 0.99)),
      most: rounded(quantile(all, 1)),
      keptByTheSame: sum(({ kept }) => kept),
      failedAttempts: sum(({ failures }) => failures),
      overlaps: sum(({ overlaps }) => overlaps)
    }]
  }))

const p50 = ({ millis }: HandOffs) => median(millis)

const p99 = (outcomes: ReadonlyArray<Outcome<HandOffs>>) =>
  Row.column("p99", outcomes, (samples) => quantile(samples.flatMap(({ millis }) => millis), 0.99))

const cpu = (outcomes: ReadonlyArray<Outcome<Contended>>) =>
  Row.column(
    "node CPU, us each",
    outcomes,
    (samples) => Row.overMeasured(samples.map(({ cpuMicros, held }) => held === 0 ? Number.NaN : cpuMicros / held))
  )

const row = (bench: Bench, id: string, title: string, outcomes: ReadonlyArray<Outcome<Contended>>) => {
  const head = { id, title, unit: "ms", better: "less" } as const
  return Row.make(bench, head, outcomes, p50, details(outcomes), Row.overMeasured, [p99(outcomes), cpu(outcomes)])
}

/** Shows what it costs if a waiter verifies its grant with a round trip. */
const confirming = variantOf(raw, "raw, confirmed by a reply", { protocol: "confirmed" })

/** The difference between this variant and raw is the protocol's cost. */
const byOurScripts = variantOf(raw, "raw, with our scripts and messages", { protocol: "ours" })

/**
 * The difference between this variant and `byOurScripts` is Effect's minimum cost. The difference between effect-simba
 * and this variant is the library's cost.
 */
const inEffect = variantOf(raw, "raw, with our scripts and messages, in Effect", { protocol: "effect" })

/** Each turn serves only one owner. */
const inStrictOrder = variantOf(ours, "ours, strict order", { localTurn: 0 })

export interface Setup {
  readonly id: string
  readonly title: string
  /** The number of contenders in each process. */
  readonly contenders: number
  readonly processes?: number
  /** Whether each process has one layer, as in an application. Otherwise each contender has its own layer. */
  readonly isShared?: true
  /** Milliseconds that a proxy adds to each round trip. */
  readonly linkMillis?: number
  readonly entrants: "everybody" | "closest"
}

const watched = Effect.fnUntraced(function*(bench: Bench, setup: Setup, holdMillis: number) {
  const { contenders, isShared = false, linkMillis = 0, processes = 1 } = setup
  const connect = linkMillis === 0 ? {} : { url: (yield* Proxy.start(bench.server.port, linkMillis)).url }
  if (linkMillis > 0) yield* Effect.addFinalizer(() => Effect.ignore(bench.disconnectAll))
  // Long enough for each contender to have several turns even over a slow link
  const millis = bench.pace.millis + 20 * linkMillis
  const entrants = [...bench[setup.entrants], ...(isShared ? [inStrictOrder] : [confirming, byOurScripts, inEffect])]
  if (contenders >= crowd) {
    const outcomes = yield* bench.rounds(
      entrants,
      1,
      Effect.fnUntraced(function*(entrant) {
        const watch = yield* crowded(bench, entrant, connect, { contenders, holdMillis, name: freshName(setup.id) })
        return yield* Effect.forEach(Array.from({ length: bench.pace.repetitions }), () => watch(millis))
      })
    )
    return outcomes.map((outcome) => ({ ...outcome, samples: outcome.samples.flat() }))
  }
  const measure = Effect.fnUntraced(function*(entrant: Entrant) {
    const agents = yield* warmAgents(bench, entrant, connect, processes, isShared)
    const places = isShared ? 1 : contenders
    const watch = yield* contention(agents, { contenders, places, holdMillis, name: freshName(setup.id) })
    return yield* watch(millis)
  })
  return yield* bench.rounds(entrants, bench.pace.repetitions, measure)
})

export const handoff = (setup: Setup) =>
  Effect.fnUntraced(function*(bench: Bench) {
    return row(bench, setup.id, setup.title, yield* watched(bench, setup, holdMillis))
  })

/** Measures the first hand-offs of a process that has just started, before V8 has optimized any code. */
export const started = Effect.fnUntraced(function*(bench: Bench) {
  const first = 500
  const measure = Effect.fnUntraced(function*(entrant: Entrant) {
    const agent = yield* bench.freshAgent(entrant)
    yield* contention([agent], { contenders: 10, holdMillis, name: freshName("started") })
    yield* Effect.sleep(1400)
    const all = handOffs([yield* agent.ask("taken")])
    return { ...all, millis: all.millis.slice(0, first) }
  })
  const outcomes = yield* bench.rounds([ours, raw], bench.pace.repetitions, measure)
  const head = {
    id: "handoff-10-started",
    title: `hand-off, p50, the first ${first} of a process, 10 contenders for one mutex`,
    unit: "ms",
    better: "less"
  } as const
  return Row.make(bench, head, outcomes, p50, details(outcomes), Row.overMeasured, [p99(outcomes)])
})

/** Measures the throughput of the hand-off itself: the queue is never empty, and owners do no work. */
export const throughput = (setup: Setup) =>
  Effect.fnUntraced(function*(bench: Bench) {
    const outcomes = yield* watched(bench, setup, 0)
    const head = { id: setup.id, title: setup.title, unit: "holders/s", better: "more" } as const
    const rate = ({ held, seconds }: Contended) => held / seconds
    return Row.make(bench, head, outcomes, rate, details(outcomes), Row.overMeasured, [cpu(outcomes)])
  })

/**
 * Measures the use case for shared turns: one millisecond of work, and a round trip of one millisecond. Compares them
 * with strict order.
 */
export const sharedTurns = Effect.fnUntraced(function*(bench: Bench) {
  const { url } = yield* Proxy.start(bench.server.port, 1)
  yield* Effect.addFinalizer(() => Effect.ignore(bench.disconnectAll))
  const measure = Effect.fnUntraced(function*(entrant: Entrant) {
    const agents = yield* warmAgents(bench, entrant, { url }, 2, true)
    const watch = yield* contention(agents, { contenders: 8, places: 1, holdMillis: 1, name: freshName("turns") })
    return yield* watch(bench.pace.millis + 600)
  })
  const strict: Entrant = { ...inStrictOrder, role: "raw" }
  const outcomes = yield* bench.rounds([ours, strict], bench.pace.repetitions, measure)
  const head = {
    id: "shared-turns-link-1",
    title: "two processes with 8 fibers each, work of 1 ms, link with 1 ms round trip",
    unit: "holders/s",
    better: "more"
  } as const
  return Row.make(bench, head, outcomes, ({ held, seconds }) => held / seconds, details(outcomes))
})

/**
 * Measures what a Cluster costs: compares effect-simba on a Cluster with effect-simba on one server. The mutexes are
 * spread over the primaries.
 */
export const handoffOnCluster = Effect.fnUntraced(function*(bench: Bench) {
  const { nodes } = yield* RedisServer.cluster()
  yield* Effect.addFinalizer(() => Effect.ignore(bench.disconnectAll))
  const onOne: Entrant = { ...ours, name: "ours, one server", role: "raw" }
  const measure = Effect.fnUntraced(function*(entrant: Entrant) {
    const connect = entrant === onOne ? {} : { url: nodes[0]!.url, isCluster: true }
    const agents = yield* warmAgents(bench, entrant, connect, 2)
    const watch = yield* contention(agents, { contenders: 1, holdMillis, name: freshName("cluster") })
    return yield* watch(bench.pace.millis)
  })
  const outcomes = yield* bench.rounds([ours, onOne], bench.pace.repetitions, measure)
  return row(bench, "handoff-cluster", "hand-off between two processes on a Cluster, p50", outcomes)
})
