/**
 * Measures effect-simba side by side with its peers (other lock libraries) and with raw (ioredis alone, doing the
 * minimum that a lock needs). `README.md` explains the rows and the method.
 *
 *     pnpm bench --compare <commit> <commit> [--quick] [--only id,id] [--repetitions n]
 *     pnpm bench --profile id,id
 *     pnpm bench --bounds [--repetitions n] [--save]
 *     pnpm bench [--quick] [--json] [--only id,id] [--repetitions n] [--no-charts] [--save]
 */
import { Cause, Effect, Exit, type Scope } from "effect"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import * as Bench from "./lib/bench.ts"
import * as Bounds from "./lib/bounds.ts"
import { format } from "./lib/format.ts"
import { circumstances } from "./lib/machine.ts"
import { parse, type Results, textOf } from "./lib/results.ts"
import type { Row } from "./lib/row.ts"
import { rounded } from "./lib/statistics.ts"
import { inWords, withStolen } from "./lib/stolen.ts"
import { isThorough, works } from "./lib/suite.ts"
import { compared as comparedWith, markdownOfProfile, readable } from "./lib/table.ts"
import * as Worktrees from "./lib/worktrees.ts"
import { growth } from "./work/growth.ts"
import { latency } from "./work/latency.ts"
import { type Profile, profile, profiledIds } from "./work/profile.ts"
import { sizes } from "./work/size.ts"

const { positionals, values: options } = commandLine({
  allowPositionals: true,
  options: {
    /** Compares two commits, instead of effect-simba with raw and the peers. */
    compare: { type: "boolean", default: false },
    /** Profiles these rows instead of measuring them. `all` selects every row that has a profile. */
    profile: { type: "string" },
    /** Runs the rows that have bounds, in less than eight minutes. `--save` stores the results for `pnpm bench:page`. */
    bounds: { type: "boolean", default: false },
    /** Runs most rows with only one peer, and compares the results with the last saved quick run, if there is one. */
    quick: { type: "boolean", default: false },
    /** Prints one line of JSON, and nothing else, to standard output. */
    json: { type: "boolean", default: false },
    /** What to measure, separated by commas: ids of rows, `size`, `growth` or `latency`. */
    only: { type: "string" },
    /** The number of repetitions of each workload. Default: five, or three with `--quick` or `--bounds`. */
    repetitions: { type: "string" },
    /** Does not measure the charts. `latest.json` keeps the previous run's charts. */
    "no-charts": { type: "boolean", default: false },
    /** With `--quick`: makes this run the baseline for later quick runs. With `--bounds`: stores the results. */
    save: { type: "boolean", default: false }
  }
}, {
  counts: ["repetitions"],
  names: { only: [...works.map(({ id }) => id), "size", "growth", "latency"], profile: ["all", ...profiledIds] }
})

const pace: Bench.Pace = {
  isQuick: options.quick || options.bounds,
  repetitions: Number(options.repetitions ?? (options.quick || options.bounds ? 3 : 5)),
  millis: 400
}

const folder = new URL("./results/", import.meta.url)
const say = (text: string) => (options.json ? process.stderr : process.stdout).write(`${text}\n`)

const read = async (file: string): Promise<Results | undefined> =>
  readFile(new URL(file, folder), "utf8").then(parse, () => undefined)

const write = async (file: string, text: string) => {
  await mkdir(folder, { recursive: true })
  await writeFile(new URL(file, folder), text)
  if (file.endsWith(".json")) await format(new URL(file, folder))
}

const chartsOf = (earlier: Results | undefined): Partial<Results> =>
  earlier?.charts === undefined ? {} : { charts: earlier.charts, chartsAt: earlier.chartsAt ?? earlier.at }

const wanted = options.bounds ? Bounds.rowIds : options.only?.split(",")
const isWanted = (id: string) => wanted === undefined || wanted.includes(id)

const commits = options.compare ? positionals : undefined
if (commits !== undefined && commits.length !== 2) {
  process.stderr.write("--compare needs two commits\n")
  process.exit(2)
}

const checkout = (commit: string) => Effect.map(Worktrees.checkout(commit), (root) => ({ commit, root }))

const profiles = Effect.fnUntraced(function*(bench: Bench.Bench, wanted: string) {
  const taken: Array<Profile> = []
  for (const id of wanted === "all" ? profiledIds : wanted.split(",")) {
    yield* bench.note(`profile of ${id}`)
    taken.push(yield* profile(bench, id))
  }
  return taken
})

const earlier = await read("latest.json")

const program = Effect.fnUntraced(function*(): Effect.fn.Return<Results, unknown, Scope.Scope> {
  const compared = commits === undefined
    ? undefined
    : { ours: yield* checkout(commits[0]!), against: yield* checkout(commits[1]!) }
  const bench = yield* Bench.open(pace, earlier?.rows ?? [], compared)
  if (options.profile !== undefined) {
    const taken = yield* profiles(bench, options.profile)
    return { ...(yield* Effect.promise(() => circumstances(bench.admin))), rows: [], profiles: taken }
  }
  const rows: Array<Row> = []
  const chosen = works.filter((work) =>
    isWanted(work.id) && (wanted !== undefined || !pace.isQuick || !isThorough(work)) &&
    (compared === undefined || work.comparesCommits)
  )
  for (const work of chosen) {
    const startedAt = performance.now()
    const [row, stolen] = yield* withStolen(Effect.scoped(work.run(bench)))
    rows.push(stolen === undefined ? row : { ...row, stolen: rounded(stolen) })
    const remark = inWords(stolen)
    const seconds = (performance.now() - startedAt) / 1000
    yield* bench.note(
      `${row.id}: ours ${row.ours}, ${row.against ?? "raw"} ${row.raw} ${row.unit}, ratio ${row.ratio} ` +
        `(${seconds.toFixed(0)} s${remark === undefined ? "" : `; ${remark}`})`
    )
  }
  const isWhole = !pace.isQuick && wanted === undefined && compared === undefined
  const hasCharts = isWhole && !options["no-charts"]
  const tables: Results = {
    ...(yield* Effect.promise(() => circumstances(bench.admin))),
    rows,
    ...(isWhole || wanted?.includes("size") === true ? { sizes: yield* sizes } : {}),
    ...(isWhole ? { profiles: yield* profiles(bench, "all") } : {}),
    ...(options.bounds ? { profiles: yield* profiles(bench, Bounds.profileIds.join(",")) } : {})
  }
  // Store the tables first, so that they survive a failure of the charts
  if (hasCharts) yield* Effect.promise(() => write("latest.json", textOf(tables)))
  const all: Results = {
    ...tables,
    ...(hasCharts || wanted?.includes("growth") === true ? { charts: yield* growth(bench) } : {})
  }
  return hasCharts || wanted?.includes("latency") === true
    ? { ...all, charts: [...all.charts ?? [], ...yield* latency(bench)] }
    : all
})

// Exit explicitly, because a signal alone would leave the server running
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1))
const exit = await Effect.runPromiseExit(Effect.scoped(program()))
if (Exit.isFailure(exit)) {
  process.stderr.write(`${Cause.pretty(exit.cause)}\n`)
  process.exit(1)
}
const results = exit.value
if (results.rows.length > 0) say(readable(results.rows))
if (results.sizes !== undefined) say(`\n${JSON.stringify(results.sizes, null, 2)}`)
for (const profile of results.profiles ?? []) say(`\n${markdownOfProfile(profile)}`)
if (options.bounds) say(`\n${Bounds.readable(results)}`)
if (options.bounds) {
  if (options.save) await write("bounds.json", textOf(results))
} else if (options.profile !== undefined) {
  const taken = results.profiles ?? []
  const kept = earlier?.profiles?.filter(({ id }) => !taken.some((one) => one.id === id)) ?? []
  if (earlier !== undefined) await write("latest.json", textOf({ ...earlier, profiles: [...kept, ...taken] }))
} else if (options.compare) {
  // Such a run is neither a baseline nor published
} else if (options.quick) {
  const earlier = await read("quick.json")
  if (earlier !== undefined) say(`\n${comparedWith(results.rows, earlier.rows)}`)
  if (options.save && wanted === undefined) await write("quick.json", textOf(results))
} else if (wanted === undefined) {
  await write("latest.json", textOf({ ...results, ...(results.charts === undefined ? chartsOf(earlier) : {}) }))
}
if (options.json) process.stdout.write(`${JSON.stringify(results)}\n`)
process.exit(0)
