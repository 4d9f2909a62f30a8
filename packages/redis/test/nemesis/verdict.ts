/** Stores a nemesis run's history in a folder, and checks a stored history. `--judge` checks an old one again. */
import { Checker, type Simulation } from "@effect-simba/testkit"
import { StreamChecker } from "@effect-simba/testkit/streams"
import { Duration, Effect } from "effect"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as lockModel from "../../src/internal/mutex/lockModel.ts"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { confirm, fencedKey, transition } from "../simulate/behaviour.ts"
import { jobsRunAsScheduled } from "../simulate/jobsChecker.ts"
import { lockOf, modelOf, recovery as streamRecovery } from "../simulate/streamPlan.ts"
import { maxFailures } from "../simulate/streamSettings.ts"
import type { Fault } from "./faults.ts"
import type { Place } from "./fleet.ts"
import { type Line, type Observed, readLines } from "./history.ts"
import * as jobs from "./jobs.ts"
import { type History, judge, type Judgement } from "./judge.ts"
import type { Text } from "./keyspace.ts"
import * as load from "./load.ts"
import type { Snapshot } from "./observer.ts"
import { reports } from "./picture.ts"

/** The contents of `run.json`. The processes' histories and MONITOR's output are in separate files. */
export interface Kept {
  readonly name: string
  /** The length of the fault phase. */
  readonly seconds: number
  readonly rounds: number
  readonly places: ReadonlyArray<Place>
  readonly faults: ReadonlyArray<Fault>
  readonly phases: History["phases"]
  readonly left: History["left"]
  readonly snapshots: ReadonlyArray<Snapshot>
  /** When servers closed the MONITOR connection. */
  readonly gaps: ReadonlyArray<number>
  /** MONITOR lines that could not be parsed. */
  readonly unreadable: ReadonlyArray<string>
  /** Violations that the run itself detected, such as a process that exited unexpectedly. */
  readonly violations: ReadonlyArray<string>
  /** Whether some processes had a wall clock with a different rate or offset. */
  readonly hasRates: boolean
}

export interface Verdict {
  readonly violations: ReadonlyArray<string>
  readonly judgements: ReadonlyArray<Judgement>
  readonly lines: ReadonlyArray<Line>
}

/** Decides which keys may remain. Mutexes and data streams share the servers, so both models allow the keys of both. */
const keep = (key: string, expires: boolean) =>
  expires || key.startsWith("fenced:") || load.streams.has(key) || key === `${load.service}-input`

const mutexLock = {
  ...lockModel.make([...load.mutexes, jobs.leadership]),
  fencedKey,
  keep
} satisfies Simulation.LockModel

const streamLock: Simulation.LockModel = { ...lockOf(load.streams, load.service), keep }

/** The time added to the simulator's bounds, because real processes share the machine. */
const slack = Duration.seconds(2)

const mutexCheckers = Effect.map(
  lockModel.bounds({ ttl: 4000, transition, confirmTimeout: confirm, commandTimeout: "500 millis" }),
  ({ recovery, sleepBound, sleepBoundAfterLoss }) => [
    Checker.rules.inOrderWithinLines,
    ...Checker.all({
      recovery: Duration.sum(recovery, slack),
      sleepBound: Duration.sum(sleepBound, slack),
      sleepBoundAfterLoss: Duration.sum(sleepBoundAfterLoss, slack)
    })
  ]
)

/** The rules for data streams that need only the commands in MONITOR. */
const streamChecks = ["checkpoints advance only past processed messages", "messages come in order"]

const streamCheckers = (settings: ReturnType<typeof load.streamSettings>) => [
  Checker.rules.oneOwner,
  Checker.rules.tokensGrow,
  Checker.rules.ensureIsTruthful,
  Checker.rules.workIsProtected,
  Checker.rules.workNeverOverlaps,
  Checker.rules.writesAreFenced,
  Checker.rules.releasedAfterWork,
  Checker.rules.nothingIsLeft,
  ...StreamChecker.all(modelOf(settings), {
    orphan: "10 seconds",
    recovery: streamRecovery,
    settle: "10 seconds",
    stay: "10 seconds",
    reaped: "10 minutes",
    maxFailures
  }).filter(({ name }) => streamChecks.includes(name))
]

/** The string keys that the checkers read. */
export const strings = [
  ...mutexLock.resources.flatMap((name) => [mutexLock.ownerKey(name), mutexLock.tokenKey(name), fencedKey(name)]),
  ...[...load.streams.keys()].flatMap((stream) => [
    streamLock.ownerKey(stream),
    streamLock.tokenKey!(stream),
    StreamKeys.checkpoint(stream as never)
  ])
]

/** The stream keys that the checkers read. */
export const streams = [...load.streams.keys()].flatMap((
  stream
) => [stream, StreamKeys.deadMessages(stream as never)])

const jobsChecker = jobsRunAsScheduled({ mutex: jobs.leadership, jobs: jobs.rules, recovery: 60_000 })

const jobsKey = `simba:{${jobs.leadership}}:jobs`

export const keepIn = (folder: string, kept: Kept, observed: ReadonlyArray<Observed>) => {
  writeFileSync(
    join(folder, "run.json"),
    JSON.stringify(kept, (_, value) => value instanceof Map ? [...value] : value)
  )
  writeFileSync(
    join(folder, "monitor.jsonl"),
    observed.map(({ args, at, isScript, node, source }) =>
      `${JSON.stringify([at, node, isScript ? "lua" : source, ...args])}\n`
    ).join("")
  )
}

const linesOf = (folder: string) =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".jsonl") && file !== "monitor.jsonl")
    .flatMap((file) => readLines(join(folder, file)))
    .sort(([a], [b]) => a - b)

const observedIn = (folder: string) =>
  readFileSync(join(folder, "monitor.jsonl"), "utf8").split("\n").filter((line) => line !== "").map(
    (line): Observed => {
      const [at, node, source, ...args] = JSON.parse(line) as [number, string, string, ...Array<string>]
      return { at, node, source, isScript: source === "lua", args }
    }
  )

/** Restores the maps, `undefined` and `Infinity`, which JSON cannot represent. */
const revive = (key: string, value: ReadonlyArray<readonly [string, Text | null]>) =>
  key === "strings"
    ? new Map(value.map(([name, found]) => [name, found === null ? undefined : textOf(found)]))
    : key === "streams"
    ? new Map(value)
    : value

const textOf = (found: Text): Text => ({
  value: found.value,
  until: found.until ?? Infinity,
  earliest: found.earliest ?? Infinity
})

/** Checks the run that is stored in a folder, and writes its reports there. */
export const verdictIn = (folder: string): Effect.Effect<Verdict & { readonly kept: Kept }> =>
  Effect.gen(function*() {
    const kept = JSON.parse(readFileSync(join(folder, "run.json"), "utf8"), revive) as Kept
    const lines = linesOf(folder)
    const history = { ...kept, lines, observed: observedIn(folder) }
    const roleOf = new Map(kept.places.map(({ name, role }) => [name, role]))
    const hasJobs = kept.places.some(({ role }) => role === "jobs")
    const settings = load.streamSettings({ rounds: kept.rounds })
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
    for (const [file, text] of reports(judgements, kept.name)) writeFileSync(join(folder, file), text)
    const seconds = (millis: number) => (millis / 1000).toFixed(3)
    const violations = [
      ...judgements.flatMap(({ violations }) =>
        violations.map(({ at, checker, message }) => `${seconds(at)} s, ${checker}: ${message}`)
      ),
      ...kept.violations,
      ...lines.flatMap(([at, client, , kind, { cause }]) =>
        kind === "crashed" ? [`${seconds(at)} s, ${client} crashed: ${cause}`] : []
      ),
      ...kept.gaps
        .filter((at) => !kept.faults.some(({ from, isRead, to }) => isRead && from <= at && at <= to))
        .map((at) => `${seconds(at)} s, MONITOR was interrupted: the history cannot be judged`),
      ...kept.unreadable.map((line) => `cannot parse a MONITOR line: ${line}`)
    ]
    return { kept, violations, judgements, lines }
  })
