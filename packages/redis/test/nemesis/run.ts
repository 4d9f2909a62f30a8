/**
 * A nemesis run: starts servers and a fleet of processes, injects faults, waits for recovery, and stops all processes.
 * Then it stores the history and checks it.
 */
import { Effect, Fiber, type Scope } from "effect"
import { mkdtempSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { type RedisServerError } from "../support/redisServer.ts"
import { type Fault, type FaultKind, faultsOf, type Stage } from "./faults.ts"
import { fakeTime, makeFleet, type Place } from "./fleet.ts"
import { clockSince, type Line, readFinished, writer } from "./history.ts"
import * as jobs from "./jobs.ts"
import type { Judgement } from "./judge.ts"
import * as load from "./load.ts"
import { makeObserver } from "./observer.ts"
import { startTopology, type Topology } from "./topology.ts"
import { keepIn, streams, strings, verdictIn } from "./verdict.ts"
import type { WorkerConfig } from "./worker.ts"

export const plans = ["mutex", "streams", "jobs", "all"] as const

export interface Options {
  readonly topology: Topology["kind"]
  readonly plan: (typeof plans)[number]
  readonly seed: number
  /** The length of the fault phase. */
  readonly seconds: number
  readonly plant?: WorkerConfig["plant"] | undefined
  /** The kinds of faults to inject. Default: all of the topology's faults. */
  readonly only?: ReadonlyArray<string> | undefined
}

export interface Outcome {
  readonly violations: ReadonlyArray<string>
  readonly holds: number
  readonly messages: number
  readonly faults: ReadonlyArray<Fault>
  readonly lines: ReadonlyArray<Line>
  readonly judgements: ReadonlyArray<Judgement>
  readonly folder: string
  readonly name: string
  readonly seconds: number
  /** Whether some processes had a wall clock with a different rate or offset. */
  readonly hasRates: boolean
}

const placesOf = (plan: Options["plan"]): ReadonlyArray<Place> => {
  const has = (one: Options["plan"]) => plan === "all" || plan === one
  return [
    ...(has("mutex") ? ["m1", "m2", "m3"] : []).map((name, index) => ({
      name,
      role: "mutex" as const,
      rate: [1, 1.02, 0.98][index]!
    })),
    ...(has("streams") ? ["s1", "s2"] : []).map((name, index) => ({
      name,
      role: "consumer" as const,
      rate: [1, 1.02][index]!
    })),
    ...(has("streams") ? [{ name: "p1", role: "producer" as const, rate: 1 }] : []),
    // The wall clock of the fifth process is 80 seconds ahead
    ...(plan === "jobs" ? ["j1", "j2", "j3", "j4", "j5"] : has("jobs") ? ["j1", "j2"] : []).map((name, index) => ({
      name,
      role: "jobs" as const,
      rate: plan === "jobs" ? [1, 1, 1.02, 0.98, 1][index]! : 1,
      ahead: index === 4 ? 80 : 0
    }))
  ]
}

/** Injects random faults one after another until the phase ends. */
const lane = (stage: Stage, kinds: ReadonlyArray<FaultKind>, seconds: number, gap: number) =>
  Effect.gen(function*() {
    const end = stage.now() + seconds * 1000
    while (kinds.length > 0) {
      yield* Effect.sleep(100 + stage.random() * gap)
      if (stage.now() >= end) return
      const [, act] = kinds[Math.floor(stage.random() * kinds.length)]!
      yield* act(stage)
    }
  })

const total = (reply: unknown) => Number(reply)

/** Counts the keys, subscriptions and client connections that are left on all servers. */
const leftOn = (nodes: Topology["nodes"]) =>
  Effect.gen(function*() {
    const keys = new Map<string, { readonly key: string; readonly expiresAt: number | undefined }>()
    let subscriptions = 0
    let connections = 0
    for (const { server } of nodes) {
      for (const key of (yield* server.send("KEYS", "*")) as ReadonlyArray<string>) {
        const left = total(yield* Effect.orElseSucceed(server.send("PTTL", key), () => 1))
        if (left !== -2) keys.set(key, { key, expiresAt: left < 0 ? undefined : left })
      }
      subscriptions += ((yield* server.send("PUBSUB", "CHANNELS", "*simba*")) as ReadonlyArray<string>).length
      const clients = String(yield* server.send("CLIENT", "LIST")).split("\n")
      connections += clients.filter((line) =>
        /flags=[NPb]+ /.test(line) && !/cmd=client/.test(line)
        && !/cmd=(?:ping|publish|info|subscribe|replconf|psync)/i.test(line)
      ).length
    }
    return { keys: [...keys.values()], subscriptions, connections }
  })

/** Waits until every announced data stream is finished. Fails if nothing changes for `seconds`. */
const settled = (topology: Topology, seconds: number, rounds: number) =>
  Effect.gen(function*() {
    const input = `${load.service}-input`
    const last = `${rounds * load.messages}-0`
    let [observed, since] = ["", performance.now()]
    for (;;) {
      const { server } = yield* topology.primaryOf(input)
      const length = yield* Effect.orElseSucceed(server.send("XLEN", input), () => -1)
      const ends = yield* Effect.forEach(
        [...load.streams.keys()],
        (stream) => Effect.orElseSucceed(server.send("GET", StreamKeys.checkpoint(stream as never)), () => "")
      )
      const letters = JSON.stringify(
        yield* Effect.orElseSucceed(
          server.send("XRANGE", StreamKeys.deadLetters(load.service as never), "-", "+"),
          () => ""
        )
      )
      const rest = [...load.streams.keys()].filter((stream, index) =>
        String(ends[index]).split("@@")[0] !== last && !letters.includes(`${stream}\\"`)
      )
      if (length === 0 && rest.length === 0) return []
      const state = `${length} announced, ${rest.join(", ")} not at the end: ${ends.join(", ")}`
      if (state !== observed) [observed, since] = [state, performance.now()]
      else if (performance.now() - since > seconds * 1000) {
        return [`no progress for ${seconds} s after the last fault: ${state}`]
      }
      yield* Effect.sleep("500 millis")
    }
  })

const isServed = (histories: ReadonlyArray<string>, over: number): boolean => {
  const waiting = new Set<string>()
  for (const [at, client, generation, kind, { wait }] of histories.flatMap(readFinished).sort(([a], [b]) => a - b)) {
    const key = `${client}#${generation}/${wait}`
    if (kind === "waiting" && at <= over) waiting.add(key)
    if (kind === "waited") waiting.delete(key)
    if (kind === "started") { for (const one of waiting) if (one.startsWith(`${client}#`)) waiting.delete(one) }
  }
  return waiting.size === 0
}

/**
 * Waits up to `seconds` until every waiter that was waiting when the faults ended is served. The checkers report those
 * that are not.
 */
const served = (histories: ReadonlyArray<string>, over: number, seconds: number) =>
  Effect.gen(function*() {
    for (let i = 0; i < seconds && !isServed(histories, over); i++) yield* Effect.sleep("1 second")
  })

/** Waits up to `seconds` until each job has run again. The checker reports those that have not. */
const repeatRun = (histories: ReadonlyArray<string>, since: number, seconds: number) =>
  Effect.gen(function*() {
    for (let i = 0; i < seconds && !jobs.haveRun(histories.flatMap(readFinished), since); i++) {
      yield* Effect.sleep("1 second")
    }
  })

/** Judges the run whose history is in a folder. */
export const outcomeIn = (folder: string): Effect.Effect<Outcome> =>
  Effect.map(verdictIn(folder), ({ judgements, kept, lines, violations }) => ({
    violations,
    holds: lines.filter(([, , , kind]) => kind === "granted").length,
    messages: lines.filter(([, , , kind]) => kind === "processed").length,
    faults: kept.faults,
    lines,
    judgements,
    folder,
    name: kept.name,
    seconds: kept.seconds,
    hasRates: kept.hasRates
  }))

export const run = (options: Options): Effect.Effect<Outcome, RedisServerError, Scope.Scope> =>
  Effect.gen(function*() {
    const { plan, plant, seconds, seed } = options
    const folder = mkdtempSync(join(tmpdir(), "effect-simba-nemesis-"))
    const epoch = String(process.hrtime.bigint())
    const now = clockSince(epoch)
    const topology = yield* startTopology(options.topology)
    const observer = makeObserver(now, { strings, streams, ports: topology.nodes.map(({ server }) => server.port) })
    yield* Effect.addFinalizer(() => observer.close)
    for (const { name, server } of topology.nodes) yield* observer.listen(name, server)
    yield* Effect.forkScoped(observer.follow)

    // A round takes two or three seconds. Running fewer rounds than fit leaves time to recover from faults.
    const rounds = Math.ceil(seconds / 5)
    const places = placesOf(plan)
    const outside = join(folder, "outside.jsonl")
    const fleet = yield* makeFleet(places, { seed, epoch, connection: topology.connection, load: { rounds }, plant }, {
      folder,
      now,
      write: writer(outside)
    })
    while (fleet.histories.some((history) => statSync(history).size === 0)) yield* Effect.sleep("20 millis")

    const faults: Array<Fault> = []
    const all = faultsOf(options.topology, plan === "jobs")
    const chosen = (kinds: ReadonlyArray<FaultKind>) => kinds.filter(([kind]) => options.only?.includes(kind) ?? true)
    const stage = (name: string): Stage => ({
      topology,
      fleet,
      observer,
      now,
      faults,
      random: load.random(`${seed} ${name}`)
    })
    const lanes = yield* Effect.forkChild(Effect.all([
      lane(stage("processes"), chosen(all.processes), seconds, 1500),
      lane(stage("servers"), chosen(all.servers), seconds, 2000)
    ], { concurrency: "unbounded", discard: true }))
    yield* Fiber.join(lanes)

    const phases: Array<readonly ["liveness" | "closing" | "closed", number]> = []
    fleet.enter("liveness")
    phases.push(["liveness", now()])
    yield* Effect.sleep("3 seconds")
    yield* served(fleet.histories, phases[0]![1], 60)
    if (places.some(({ role }) => role === "jobs")) yield* repeatRun(fleet.histories, phases[0]![1], 60)
    const unfinished = places.some(({ role }) => role === "producer") ? yield* settled(topology, 240, rounds) : []
    phases.push(["closing", now()])
    fleet.enter("closing")
    yield* fleet.ended(120_000)
    // Let the servers notice that the connections are closed
    yield* Effect.sleep("500 millis")
    const left = yield* leftOn(topology.nodes)
    phases.push(["closed", now()])

    keepIn(folder, {
      name: `${options.topology}, ${plan}, seed ${seed}`,
      seconds,
      rounds,
      places,
      faults,
      phases,
      left,
      snapshots: observer.snapshots,
      gaps: observer.gaps,
      unreadable: observer.unreadable,
      violations: [...unfinished, ...fleet.violations],
      hasRates: fakeTime !== undefined
    }, observer.observed)
    return yield* outcomeIn(folder)
  })
