/** Measures where effect-simba and raw spend their time during a hand-off or an acquire-release pair. */
import { Effect, type Scope } from "effect"
import type { Redis } from "ioredis"
import type { Agent, AgentError } from "../lib/agent.ts"
import { type Bench, type Entrant, ours, raw, variantOf } from "../lib/bench.ts"
import { rounded } from "../lib/statistics.ts"
import { warmUpMillis } from "../lib/warmUp.ts"
import { contention, freshName, holdMillis, warmUp } from "./handoff.ts"

const meteredMillis = 1000
const profiledMillis = 2000

interface Work {
  readonly title: string
  readonly each: string
  readonly processes?: number
  readonly entrant: Entrant
  /**
   * Prepares the workload. The returned function runs it for some milliseconds, and returns the number of operations.
   */
  readonly run: (
    agents: ReadonlyArray<Agent>,
    variant: string
  ) => Effect.Effect<(millis: number) => Effect.Effect<number, AgentError>, AgentError, Scope.Scope>
}

const contended = (contenders: number, hold: number): Work["run"] => (agents) =>
  Effect.map(
    Effect.andThen(
      warmUp(agents),
      contention(agents, { contenders, holdMillis: hold, name: freshName("profile") })
    ),
    (watch) => (millis) => Effect.map(watch(millis), ({ held }) => held)
  )

const free = (inFlight: number): Work["run"] => ([agent], variant) =>
  Effect.succeed((millis) =>
    Effect.map(agent!.ask("pairs", { inFlight, millis, variant, oneName: false }), ({ pairs }) => pairs)
  )

const handOff = { each: "hand-off", entrant: ours }
const pair = { each: "pair", entrant: ours }
const withLock = variantOf(ours, "ours, withLock", { variant: "withLock" })

/** The profiled workloads, by row id. */
const profiled: Readonly<Record<string, Work>> = {
  "uncontended-1": { ...pair, title: "acquire + release of an uncontended mutex, 1 in flight", run: free(1) },
  "uncontended-64": { ...pair, title: "acquire + release of an uncontended mutex, 64 in flight", run: free(64) },
  "withLock-1": { ...pair, title: "withLock of an uncontended mutex, 1 in flight", entrant: withLock, run: free(1) },
  "handoff-10": { ...handOff, title: "hand-off, 10 contenders", run: contended(10, holdMillis) },
  "throughput-2-processes": {
    ...handOff,
    title: "contended mutex, empty bodies, two processes with 8 contenders each",
    processes: 2,
    run: contended(8, 0)
  }
}

export const profiledIds = Object.keys(profiled)

/** Figures per hand-off or pair, summed over all processes. */
export interface Profile {
  readonly id: string
  readonly title: string
  readonly each: string
  readonly at: string
  readonly figures: ReadonlyArray<readonly [name: string, ours: number, raw: number]>
}

/** Matches script calls and subscription commands. A script's time includes the commands that it calls. */
const commandLine = /^cmdstat_(?:evalsha|eval|subscribe|unsubscribe):calls=(\d+),usec=(\d+)/gm
const cpuLine = /^used_cpu_(?:sys|user):([\d.]+)/gm

const served = (admin: Redis) =>
  Effect.promise(async () => {
    const commands = [...(await admin.info("commandstats")).matchAll(commandLine)]
    const sum = (values: ReadonlyArray<number>) => values.reduce((a, b) => a + b, 0)
    return {
      calls: sum(commands.map(([, calls]) => Number(calls))),
      micros: sum(commands.map(([, , micros]) => Number(micros))),
      cpuMicros: 1e6 * sum([...(await admin.info("cpu")).matchAll(cpuLine)].map(([, seconds]) => Number(seconds)))
    }
  })

const measure = Effect.fnUntraced(function*(bench: Bench, { processes = 1, run }: Work, entrant: Entrant) {
  const agents: Array<Agent> = []
  for (let i = 0; i < processes; i++) agents.push(yield* bench.freshAgent(entrant))
  const forMillis = yield* run(agents, entrant.variant)
  yield* forMillis(warmUpMillis)
  // Measure CPU time without the profiler, which needs CPU time itself
  const before = yield* served(bench.admin)
  for (const agent of agents) yield* agent.ask("startMeter", { stalls: false })
  const count = yield* forMillis(meteredMillis)
  const spent = yield* Effect.forEach(agents, (agent) => agent.ask("readMeter"))
  const after = yield* served(bench.admin)
  for (const agent of agents) yield* agent.ask("startProfile")
  const profiledCount = yield* forMillis(profiledMillis)
  const profiles = yield* Effect.forEach(agents, (agent) => agent.ask("readProfile"))
  const sum = (values: ReadonlyArray<number>, of: number) => values.reduce((a, b) => a + b, 0) / of
  const parts = [...new Set(profiles.flatMap(({ parts }) => Object.keys(parts)))]
  return new Map([
    ["Redis: script calls and subscriptions", (after.calls - before.calls) / count],
    ["Redis: time in them, us", (after.micros - before.micros) / count],
    ["Redis: CPU, us", (after.cpuMicros - before.cpuMicros) / count],
    ["Node: CPU, us", sum(spent.map(({ cpuMillis }) => 1000 * cpuMillis), count)],
    ["Node: socket writes", sum(profiles.map(({ writes }) => writes), profiledCount)],
    ["Node: time in them, us", sum(profiles.map(({ writeMicros }) => writeMicros), profiledCount)],
    ...parts.map((part): [string, number] => [
      `Node: in ${part}, us`,
      sum(profiles.map(({ parts }) => parts[part] ?? 0), profiledCount)
    ])
  ])
}, Effect.scoped)

export const profile = Effect.fnUntraced(function*(bench: Bench, id: string) {
  const work = profiled[id]
  if (work === undefined) {
    return yield* Effect.die(new Error(`no profile of ${id}; there are ${profiledIds.join(", ")}`))
  }
  const of = { ours: yield* measure(bench, work, work.entrant), raw: yield* measure(bench, work, raw) }
  const isPart = (name: string) => name.startsWith("Node: in ")
  const names = [...new Set([...of.ours.keys(), ...of.raw.keys()])]
  const parts = names.filter(isPart).sort((a, b) => (of.ours.get(b) ?? 0) - (of.ours.get(a) ?? 0))
  const figures = [...names.filter((name) => !isPart(name)), ...parts].map((name) =>
    [name, rounded(of.ours.get(name) ?? 0), rounded(of.raw.get(name) ?? 0)] as const
  )
  const { each, title } = work
  return { id, title, each, at: new Date().toISOString(), figures } satisfies Profile as Profile
})
