/** One run: a fleet on servers under faults, then time without them, then the end of all, and the judgement. */
import { Checker, type Simulation } from "@effect-simba/testkit"
import { StreamChecker } from "@effect-simba/testkit/streams"
import { Duration, Effect, Fiber, type Scope } from "effect"
import { mkdtempSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as lockModel from "../../src/internal/mutex/lockModel.ts"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { confirm, fencedKey, transition } from "../simulate/behaviour.ts"
import { jobsKeepTheirWord } from "../simulate/jobsChecker.ts"
import { lockOf, modelOf, recovery as streamRecovery } from "../simulate/streamPlan.ts"
import { maxFailures } from "../simulate/streamSettings.ts"
import { type RedisServerError } from "../support/redisServer.ts"
import { type Fault, type FaultKind, faultsOf, type Stage } from "./faults.ts"
import { fakeTime, makeFleet, type Place } from "./fleet.ts"
import { clockSince, type Line, readFinished, readLines, writer } from "./history.ts"
import * as jobs from "./jobs.ts"
import { judge, type Judgement } from "./judge.ts"
import * as load from "./load.ts"
import { makeObserver } from "./observer.ts"
import { reports } from "./picture.ts"
import { startTopology, type Topology } from "./topology.ts"
import type { WorkerConfig } from "./worker.ts"

export const plans = ["mutex", "streams", "jobs", "all"] as const

export interface Options {
  readonly topology: Topology["kind"]
  readonly plan: (typeof plans)[number]
  readonly seed: number
  /** How long there are faults. */
  readonly seconds: number
  readonly plant?: WorkerConfig["plant"] | undefined
  /** The kinds of faults. Default: all of the topology. */
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
  /** Whether some processes had a wall clock of another rate. */
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
    // The clock of the last one is more than a minute ahead
    ...(plan === "jobs" ? ["j1", "j2", "j3", "j4", "j5"] : has("jobs") ? ["j1", "j2"] : []).map((name, index) => ({
      name,
      role: "jobs" as const,
      rate: plan === "jobs" ? [1, 1, 1.02, 0.98, 1][index]! : 1,
      ahead: index === 4 ? 80 : 0
    }))
  ]
}

/** Both kinds of keys are on the same servers. */
const keep = (key: string, expires: boolean) =>
  expires || key.startsWith("fenced:") || load.streams.has(key) || key === `${load.service}-input`

const mutexLock = {
  ...lockModel.make([...load.mutexes, jobs.leadership]),
  fencedKey,
  keep
} satisfies Simulation.LockModel

const streamLock: Simulation.LockModel = { ...lockOf(load.streams, load.service), keep }

/** How much later than in the simulator, where nothing else runs on the machine. */
const slack = Duration.seconds(2)

const mutexCheckers = Effect.map(
  lockModel.bounds({ ttl: 4000, transition, confirmTimeout: confirm, commandTimeout: "500 millis" }),
  ({ recovery, sleepBound, sleepBoundAfterLoss }) => [
    Checker.inOrderWithinLines,
    ...Checker.all({
      recovery: Duration.sum(recovery, slack),
      sleepBound: Duration.sum(sleepBound, slack),
      sleepBoundAfterLoss: Duration.sum(sleepBoundAfterLoss, slack)
    })
  ]
)

const jobsChecker = jobsKeepTheirWord({ mutex: jobs.leadership, jobs: jobs.rules, recovery: 60_000 })

/** Those that need no more of the server than MONITOR shows. */
const streamChecks = ["checkpoints grow over what was processed", "messages come in order"]

const streamCheckers = (settings: ReturnType<typeof load.streamSettings>) => [
  Checker.oneOwner,
  Checker.tokensGrow,
  Checker.ensureTellsTheTruth,
  Checker.workIsProtected,
  Checker.workNeverOverlaps,
  Checker.writesAreFenced,
  Checker.releasedAfterWork,
  Checker.nothingIsLeft,
  ...StreamChecker.all(modelOf(settings), {
    orphan: "10 seconds",
    recovery: streamRecovery,
    settle: "10 seconds",
    stay: "10 seconds",
    reaped: "10 minutes",
    maxFailures
  }).filter(({ name }) => streamChecks.includes(name))
]

const strings = [
  ...mutexLock.resources.flatMap((name) => [mutexLock.ownerKey(name), mutexLock.tokenKey(name), fencedKey(name)]),
  ...[...load.streams.keys()].flatMap((stream) => [
    streamLock.ownerKey(stream),
    streamLock.tokenKey!(stream),
    StreamKeys.checkpoint(stream as never)
  ])
]
const streams = [...load.streams.keys()].flatMap((stream) => [stream, StreamKeys.deadMessages(stream as never)])

/** One fault after the other, for as long as there are to be faults. */
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

/** What each server has in the end, added up. */
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

/** Everything that was announced has come to its end, within a bound. */
const settled = (topology: Topology, seconds: number, rounds: number) =>
  Effect.gen(function*() {
    const input = `${load.service}-input`
    const last = `${rounds * load.messages}-0`
    for (let i = 0; i < seconds * 2; i++) {
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
      yield* Effect.sleep("500 millis")
      if (i === seconds * 2 - 1) {
        return [
          `streams are not finished ${seconds} s after the last fault: ${length} announced, ${
            rest.join(", ")
          } not at the end: ${ends.join(", ")}`
        ]
      }
    }
    return []
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

/** Waits until all who waited at the end of the faults are served, or the bound has passed: the checkers judge it. */
const served = (histories: ReadonlyArray<string>, over: number, seconds: number) =>
  Effect.gen(function*() {
    for (let i = 0; i < seconds && !isServed(histories, over); i++) yield* Effect.sleep("1 second")
  })

/** Waits until each job has run again, or the bound has passed: the checker judges it. */
const runAgain = (histories: ReadonlyArray<string>, since: number, seconds: number) =>
  Effect.gen(function*() {
    for (let i = 0; i < seconds && !jobs.haveRun(histories.flatMap(readFinished), since); i++) {
      yield* Effect.sleep("1 second")
    }
  })

const jobsKey = `simba:{${jobs.leadership}}:jobs`

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

    // A round takes two or three seconds
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
    const hasJobs = places.some(({ role }) => role === "jobs")
    if (hasJobs) yield* runAgain(fleet.histories, phases[0]![1], 60)
    const unfinished = places.some(({ role }) => role === "producer") ? yield* settled(topology, 240, rounds) : []
    phases.push(["closing", now()])
    fleet.enter("closing")
    yield* fleet.ended(30_000)
    // A server notices the end of a connection in its next turn
    yield* Effect.sleep("500 millis")
    const left = yield* leftOn(topology.nodes)
    phases.push(["closed", now()])

    const lines = [...fleet.histories, outside].flatMap(readLines).sort(([a], [b]) => a - b)
    const history = { lines, observed: observer.observed, snapshots: observer.snapshots, faults, phases, left }
    const roleOf = new Map(places.map(({ name, role }) => [name, role]))
    const settings = load.streamSettings({ rounds })
    const judgements = [
      judge(history, mutexLock, [...yield* Effect.orDie(mutexCheckers), ...hasJobs ? [jobsChecker] : []], {
        data: [jobsKey],
        isMember: (client) => ["mutex", "jobs"].includes(roleOf.get(client) ?? "")
      }),
      judge(history, streamLock, streamCheckers(settings), {
        data: [...streams, ...strings],
        isMember: (client) => ["consumer", "producer"].includes(roleOf.get(client) ?? "")
      })
    ]
    const seconds3 = (millis: number) => (millis / 1000).toFixed(3)
    const violations = [
      ...judgements.flatMap(({ violations }) =>
        violations.map(({ at, checker, message }) => `${seconds3(at)} s, ${checker}: ${message}`)
      ),
      ...unfinished,
      ...fleet.violations,
      ...lines.flatMap(([at, client, , kind, { cause }]) =>
        kind === "crashed" ? [`${seconds3(at)} s, ${client} crashed: ${cause}`] : []
      ),
      ...observer.gaps
        .filter((at) => !faults.some(({ from, isRead, to }) => isRead && from <= at && at <= to))
        .map((at) => `${seconds3(at)} s, MONITOR ended: the history cannot be judged`),
      ...observer.unreadable.map((line) => `a line of MONITOR cannot be read: ${line}`)
    ]
    const name = `${options.topology}, ${plan}, seed ${seed}`
    for (const [file, text] of reports(judgements, name)) writeFileSync(join(folder, file), text)
    writeFileSync(
      join(folder, "monitor.jsonl"),
      observer.observed.map(({ args, at, node, source }) => `${JSON.stringify([at, node, source, ...args])}\n`).join("")
    )
    return {
      violations,
      holds: lines.filter(([, , , kind]) => kind === "granted").length,
      messages: lines.filter(([, , , kind]) => kind === "processed").length,
      faults,
      lines,
      judgements,
      folder,
      hasRates: fakeTime !== undefined
    }
  })
