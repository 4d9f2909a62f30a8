/** From a release to the next holder, with so many who want one mutex all the time. */
import { Effect } from "effect"
import { RedisServer } from "../../packages/redis/test/support/redisServer.ts"
import type { Agent, AgentError } from "../lib/agent.ts"
import { type Bench, type Entrant, ours, type Outcome, raw, variantOf } from "../lib/bench.ts"
import { type HandOffs, handOffs } from "../lib/handoffs.ts"
import * as Proxy from "../lib/proxy.ts"
import * as Row from "../lib/row.ts"
import { median, quantile, rounded } from "../lib/statistics.ts"

/** Long enough for whoever has just released to be queued again. */
export const holdMillis = 2

/** Time for all of them to be in the queue. */
export const settling = (contenders: number): Effect.Effect<void> => Effect.sleep(250 + 1.5 * contenders)

let round = 0
/** A mutex that nobody else uses. */
export const freshName = (label: string): string => `${label}-${++round}`

/** Lets agents contend for one mutex together, and answers what they did within a time. */
export const contendFor = (
  agents: ReadonlyArray<Agent>,
  options: {
    readonly contenders: number
    readonly millis: number
    readonly name: string
    /** How long each has the mutex. Default: `holdMillis`. */
    readonly holdMillis?: number
    /** Waits for longer than it takes all of them to be in the queue. */
    readonly calmMillis?: number
  },
  during: (wait: Effect.Effect<void>) => Effect.Effect<void, AgentError> = (wait) => wait
): Effect.Effect<HandOffs, AgentError> =>
  Effect.gen(function*() {
    const { calmMillis = 0, contenders, holdMillis: hold = holdMillis, name } = options
    const announces = agents.length > 1
    for (const agent of agents) agent.tell(agents.filter((other) => other !== agent))
    const request = { name, contenders, places: contenders, mutexes: 1, holdMillis: hold, announces }
    for (const agent of agents) yield* agent.ask("contend", request)
    yield* Effect.andThen(settling(contenders), Effect.sleep(calmMillis))
    for (const agent of agents) yield* agent.ask("taken")
    yield* during(Effect.sleep(options.millis))
    const logs = yield* Effect.forEach(agents, (agent) => agent.ask("taken"))
    return handOffs(logs)
  }).pipe(
    Effect.ensuring(
      Effect.forEach(agents, (agent) => Effect.ignore(agent.ask("stopContending")), { concurrency: "unbounded" })
    )
  )

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
const overMeasured = (values: ReadonlyArray<number>) => median(values.filter((value) => !Number.isNaN(value)))

const p99s = (outcomes: ReadonlyArray<Outcome<HandOffs>>): Row.Column => ({
  title: "p99",
  values: Object.fromEntries(outcomes.map(({ entrant, samples }) => [
    entrant.name,
    rounded(quantile(samples.flatMap(({ millis }) => millis), 0.99))
  ]))
})

const row = (bench: Bench, id: string, title: string, outcomes: ReadonlyArray<Outcome<HandOffs>>) => {
  const head = { id, title, unit: "ms", better: "less" } as const
  return Row.make(bench, head, outcomes, p50, details(outcomes), overMeasured, [p99s(outcomes)])
}

/** What the round trip costs by which a waiter learns that what it was told is so. */
const confirming = variantOf(raw, "raw, confirmed by a reply", { confirms: true })

export const handoff = Effect.fnUntraced(function*(bench: Bench, contenders: number) {
  const measure = Effect.fnUntraced(function*(entrant: Entrant) {
    const agent = yield* bench.agent(entrant)
    return yield* contendFor([agent], { contenders, millis: bench.pace.millis, name: freshName("handoff") })
  })
  const outcomes = yield* bench.rounds([...bench.everybody, confirming], bench.pace.repetitions, measure)
  return row(bench, `handoff-${contenders}`, `hand-off, p50, ${contenders} contenders for one mutex`, outcomes)
})

export const handoffBetweenProcesses = Effect.fnUntraced(function*(bench: Bench) {
  const measure = Effect.fnUntraced(function*(entrant: Entrant) {
    const agents = [yield* bench.agent(entrant), yield* bench.agent(entrant, {}, 2)]
    return yield* contendFor(agents, { contenders: 1, millis: bench.pace.millis, name: freshName("processes") })
  })
  const outcomes = yield* bench.rounds([...bench.everybody, confirming], bench.pace.repetitions, measure)
  return row(bench, "handoff-2-processes", "hand-off between two processes, p50", outcomes)
})

/** What a Cluster adds: ours there against ours on one server. The names are spread over the primaries. */
export const handoffOnCluster = Effect.fnUntraced(function*(bench: Bench) {
  const { nodes } = yield* RedisServer.cluster()
  yield* Effect.addFinalizer(() => Effect.ignore(bench.disconnectAll))
  const onOne: Entrant = { ...ours, name: "ours, one server", role: "raw" }
  const measure = Effect.fnUntraced(function*(entrant: Entrant) {
    const connect = entrant === onOne ? {} : { url: nodes[0]!.url, isCluster: true }
    const agents = [yield* bench.agent(entrant, connect), yield* bench.agent(entrant, connect, 2)]
    return yield* contendFor(agents, { contenders: 1, millis: bench.pace.millis, name: freshName("cluster") })
  })
  const outcomes = yield* bench.rounds([ours, onOne], bench.pace.repetitions, measure)
  return row(bench, "handoff-cluster", "hand-off between two processes on a Cluster, p50", outcomes)
})

/** A proxy adds so many milliseconds to each round trip. */
export const handoffOverLink = Effect.fnUntraced(function*(bench: Bench, millis: number) {
  const { url } = yield* Proxy.start(bench.server.port, millis)
  yield* Effect.addFinalizer(() => Effect.ignore(bench.disconnectAll))
  const measure = Effect.fnUntraced(function*(entrant: Entrant) {
    const agent = yield* bench.agent(entrant, { url })
    // Each of ten has its turn several times
    const options = { contenders: 10, millis: bench.pace.millis + 40 * millis, name: freshName("link") }
    return yield* contendFor([agent], options)
  })
  const outcomes = yield* bench.rounds([...bench.everybody, confirming], bench.pace.repetitions, measure)
  return row(
    bench,
    `handoff-link-${millis}`,
    `hand-off, p50, 10 contenders, link with ${millis} ms round trip`,
    outcomes
  )
})

/** Always somebody in the queue, and no work: what the hand-off itself lets through. */
export const throughputOfProcesses = Effect.fnUntraced(function*(bench: Bench) {
  const measure = Effect.fnUntraced(function*(entrant: Entrant) {
    const agents = [yield* bench.agent(entrant), yield* bench.agent(entrant, {}, 2)]
    const { millis } = bench.pace
    const options = { contenders: 8, millis, holdMillis: 0, name: freshName("throughput") }
    const { kept, millis: handed } = yield* contendFor(agents, options)
    return 1000 * (handed.length + kept) / millis
  })
  const outcomes = yield* bench.rounds([...bench.everybody, confirming], bench.pace.repetitions, measure)
  const head = {
    id: "throughput-2-processes",
    title: "contended mutex, empty bodies, two processes with 8 contenders each",
    unit: "holders/s",
    better: "more"
  } as const
  return Row.make(bench, head, outcomes, (rate) => rate)
})
