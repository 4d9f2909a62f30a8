/**
 * Writes the tables and charts from the last full run into `docs/performance.md`, between the page's markers. If there
 * was no full run, uses the last quick run. The quick run, the bounds and data streams have their own tables.
 *
 *     pnpm bench:page
 */
import { readdir, readFile, rm, writeFile } from "node:fs/promises"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import type { LatenessRow } from "./lateness.ts"
import * as Bounds from "./lib/bounds.ts"
import { svg } from "./lib/chart.ts"
import { format } from "./lib/format.ts"
import { parse } from "./lib/results.ts"
import type { Row } from "./lib/row.ts"
import { drawn } from "./lib/rowChart.ts"
import { charts as rowCharts, works } from "./lib/suite.ts"
import { markdownOf, markdownOfProfile } from "./lib/table.ts"
import { verdict } from "./lib/verdict.ts"
import type { StreamRow } from "./streams/rows.ts"

/** Replaces "ours", which stands for this library in the results, with the library's name. */
const named = (text: string): string => text.replace(/\bours\b/g, "effect-simba")

commandLine({ options: {} })

const page = new URL("../docs/performance.md", import.meta.url)
const folder = new URL("./results/", import.meta.url)
const read = (file: string) => readFile(new URL(file, folder), "utf8")
const full = await read("latest.json").catch(() => undefined)
const results = parse(
  full ?? await read("quick.json").catch(() => {
    throw new Error("no results yet: run `pnpm bench` first")
  })
)

const circumstances = () => {
  const { at, machine, peers } = results
  // Omit this library's version, because the run measures this checkout's code
  const { "effect-simba": _, ...versions } = results.versions
  const named = (versions: Readonly<Record<string, string>>) =>
    Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ")
  const maxStolen = Math.max(0, ...results.rows.map(({ stolen }) => stolen ?? 0))
  return [
    ...full === undefined
      ? ["A quick run: three short repetitions, with redis-semaphore as the only peer. `pnpm bench` makes a full run."]
      : [],
    `Run of ${at.slice(0, 10)} on ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGigabytes} GB, ` +
    `${machine.system}. ${named(versions)}.`,
    ...maxStolen < 0.01
      ? []
      : [`Up to ${Math.round(100 * maxStolen)}% of a row's CPU time was stolen by the hypervisor.`],
    `Peers: ${Object.values(peers).map((dependencies) => named(dependencies)).join("; ")}.`
  ].join("\n\n")
}

const isForCharts = new Set(works.filter((work) => work.isForCharts).map(({ id }) => id))
const rows = results.rows.filter(({ id }) => !isForCharts.has(id))

const tables = () => [summary(rows), ...rows.map((row) => `### ${row.title}\n\n${markdownOf(row)}`)].join("\n\n")

/** The profiles of effect-simba and raw. */
const profiles = () =>
  results.profiles?.map((profile) => `${markdownOfProfile(profile)}\n\nTaken ${profile.at.slice(0, 10)}.`).join(
    "\n\n"
  ) ??
    "Not taken yet: `pnpm bench --profile all`."

const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`

/** The sizes of the bundles without each feature and all before it, and with only that feature. */
const ablation = () => {
  const rows = results.sizes?.ablation
  if (rows === undefined) return "Not measured in this run."
  return [
    "| removed | only locks, gzip | brotli | with only this one kept, brotli | core + redis without streams, gzip | brotli | with only this one kept, gzip |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...rows.map(({ alone, feature, left: { locks, withoutStreams } }) => {
      const cells = [
        locks.gzip,
        locks.brotli,
        alone?.locks.brotli,
        withoutStreams.gzip,
        withoutStreams.brotli,
        alone?.withoutStreams.gzip
      ].map((bytes) => bytes === undefined ? "" : kilobytes(bytes))
      return `| ${feature} | ${cells.join(" | ")} |`
    })
  ].join("\n")
}

const sizes = () => {
  const { sizes } = results
  if (sizes === undefined) return "Not measured in this run."
  return [
    "|  |  |",
    "| --- | ---: |",
    `| import of the mutex on top of effect and ioredis | ${sizes.importMillis} ms |`,
    `| import of everything in both packages | ${sizes.barrelsMillis} ms |`,
    `| a program that only locks, minified and gzipped | ${kilobytes(sizes.mutexOnly.gzip)} |`,
    `| the same, brotli | ${kilobytes(sizes.mutexOnly.brotli)} |`,
    `| core + redis without streams, minified and gzipped | ${kilobytes(sizes.withoutStreams.gzip)} |`,
    `| the same, brotli | ${kilobytes(sizes.withoutStreams.brotli)} |`,
    `| core + redis with everything, minified and gzipped | ${kilobytes(sizes.everything.gzip)} |`,
    `| the same, brotli | ${kilobytes(sizes.everything.brotli)} |`,
    ...sizes.otherProvider === undefined
      ? []
      : [
        `| a program that only locks on another provider of \`Redis\`, brotli | ${
          kilobytes(sizes.otherProvider.brotli)
        } |`,
        `| a program that only locks, in memory, brotli | ${kilobytes(sizes.inMemory!.brotli)} |`,
        `| a program that only locks, bundled with effect, brotli | ${kilobytes(sizes.withEffect!.brotli)} |`,
        `| a program that only locks, bundled with effect and ioredis, brotli | ${
          kilobytes(sizes.withIoredis!.brotli)
        } |`
      ],
    ...sizes.parts === undefined
      ? []
      : [
        "",
        `Sizes measured on ${sizes.at!.slice(0, 10)}, without effect and ioredis unless the row says so; the import ` +
        "times are from the run above. The bundle of a program that only locks breaks down as follows. Each part is " +
        "compressed alone, so the sum is larger than the bundle.",
        "",
        "| part | minified | brotli |",
        "| --- | ---: | ---: |",
        ...sizes.parts.map(({ brotli, minified, part }) =>
          `| ${part} | ${kilobytes(minified)} | ${kilobytes(brotli)} |`
        )
      ]
  ].join("\n")
}

interface StreamResults {
  readonly at: string
  readonly rows: ReadonlyArray<StreamRow>
}

const streams = async () => {
  const text = await read("streams.json").catch(() => undefined)
  if (text === undefined) return "Not measured yet: `pnpm bench:streams --save`."
  const { at, rows } = JSON.parse(text) as StreamResults
  return [
    `Run of ${at.slice(0, 10)}.`,
    "",
    "|  | median | min | max | bound | samples | lost | longest stall (ms) |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...rows.map(({ bound, longestStallMillis, lost, samples, spread: [min, max], title, unit, value }) =>
      `| ${title} (${unit}) | ${value} | ${min} | ${max} | ${bound ?? ""} | ${samples} | ${lost ?? ""} | ` +
      `${longestStallMillis ?? ""} |`
    )
  ].join("\n")
}

const lateness = async () => {
  const text = await read("lateness.json").catch(() => undefined)
  if (text === undefined) return "Not measured yet: `pnpm bench:lateness --save`."
  const { at, rows } = JSON.parse(text) as { readonly at: string; readonly rows: ReadonlyArray<LatenessRow> }
  return [
    `Run of ${at.slice(0, 10)}.`,
    "",
    "| scenario | turn (ms) | lateness (ms) | min | max | event-loop turns started | lateness beyond the current turn (ms) |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...rows.map(({ beyond, millis, spread: [min, max], title, turn, turns }) =>
      `| ${title} | ${turn} | ${millis} | ${min} | ${max} | ${turns} | ${beyond} |`
    )
  ].join("\n")
}

interface SoakResults {
  readonly at: string
  readonly minutes: number
  readonly streams: number
  readonly sent: number
  readonly unread: number
  readonly kills: number
  readonly closings: number
  readonly lost: number
  readonly samples: ReadonlyArray<{ readonly heapMegabytes: number; readonly redisMegabytes: number }>
}

const soak = async () => {
  const text = await read("soak.json").catch(() => undefined)
  if (text === undefined) return "Not run yet: `pnpm soak:streams --save`."
  const { at, closings, kills, lost, minutes, samples, sent, streams, unread } = JSON.parse(text) as SoakResults
  const late = samples.slice(Math.ceil(samples.length / 4))
  const range = (of: (sample: SoakResults["samples"][number]) => number) =>
    `${Math.min(...late.map(of))} to ${Math.max(...late.map(of))} MB`
  return [
    `Soak of ${at.slice(0, 10)}: ${minutes} minutes, ${streams} data streams, ${sent} messages.`,
    `${kills} processes were killed and ${closings} closed.`,
    `Data streams with unread messages: ${unread}. Leases lost without a kill: ${lost}.`,
    `After the first quarter, the heap of the surviving process ranged from ${
      range((sample) => sample.heapMegabytes)
    }, and Redis memory from ${range((sample) => sample.redisMegabytes)}.`
  ].join(" ")
}

/** A table that compares effect-simba with raw, one line per row. */
const summary = (rows: ReadonlyArray<Row>) => {
  const middle = (quartiles: readonly [number, number] | undefined) => quartiles?.join(" to ") ?? ""
  const both = (row: Row, column: string) => {
    const values = row.columns?.find(({ title }) => title === column)?.values
    return values === undefined ? "" : `${values["ours"]} / ${values[row.against ?? "raw"]}`
  }
  return [
    "|  | ours | IQR | raw | IQR | ratio to raw | verdict | p99, ours / raw | Node CPU per op (µs), ours / raw | CPU stolen |",
    "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |",
    ...rows.map((row) => {
      const { against, better, ours, quartiles, ratio, raw, stolen, title, unit } = row
      const cells = [
        `${title} (${unit}${against === undefined ? "" : `, against ${against}`})`,
        ours,
        middle(quartiles?.ours),
        raw,
        middle(quartiles?.raw),
        ratio,
        verdict(better, quartiles?.ours, quartiles?.raw) ?? "",
        both(row, "p99"),
        both(row, "node CPU, us each"),
        stolen === undefined ? "" : `${Math.round(100 * stolen)}%`
      ]
      return `| ${cells.join(" | ")} |`
    })
  ].join("\n")
}

/**
 * Returns how much longer effect-simba takes than raw per operation, in microseconds, or undefined if the row does not
 * time single operations.
 */
const addedMicros = ({ id, ours, raw, unit }: Row): number | undefined =>
  unit === "ms" && id.startsWith("handoff-")
    ? 1000 * (ours - raw)
    : id === "uncontended-1"
    ? 1e6 / ours - 1e6 / raw
    : undefined

const addedCpu = ({ columns }: Row): number | undefined => {
  const values = columns?.find(({ title }) => title === "node CPU, us each")?.values
  return values?.["ours"] === undefined || values["raw"] === undefined ? undefined : values["ours"] - values["raw"]
}

/** A table of the absolute overhead. A faster machine speeds up raw, but hardly reduces effect-simba's overhead. */
const added = () => {
  const lines = results.rows.filter((row) => row.against === undefined && !isForCharts.has(row.id)).flatMap((row) => {
    const [micros, cpu] = [addedMicros(row), addedCpu(row)]
    const cell = (value: number | undefined) => value === undefined ? "" : String(Math.round(value))
    return micros === undefined ? [] : [`| ${row.title} | ${cell(micros)} | ${cell(cpu)} |`]
  })
  return ["|  | time (µs) | Node CPU (µs) |", "| --- | ---: | ---: |", ...lines].join("\n")
}

/**
 * The table for the quick run that is the baseline for later quick runs. It is updated with every change to the hot
 * path, because full runs are rare.
 */
const quick = async () => {
  const text = await read("quick.json").catch(() => undefined)
  if (text === undefined) return "There has been none since the full run. `pnpm bench --quick --save` adds one."
  const { at, machine, rows } = parse(text)
  return `Run of ${at.slice(0, 10)} on ${machine.cores} cores of ${machine.cpu}.\n\n${summary(rows)}`
}

/** The table for the last run of the rows that have bounds. */
const bounds = async () => {
  const text = await read("bounds.json").catch(() => undefined)
  if (text === undefined) return "Not run yet: `pnpm bench --bounds --save`."
  const run = parse(text)
  return [
    `Run of ${run.at.slice(0, 10)} on ${run.machine.cores} cores of ${run.machine.cpu}.`,
    ...run.at <= results.at
      ? []
      : [`The mutex rows, profiles and charts are from an earlier run and version (${results.at.slice(0, 10)}).`],
    Bounds.markdown(run)
  ].join("\n\n")
}

/** Draws the charts for a run, and removes those from earlier runs. */
const draw = async () => {
  const ofRows = rowCharts.flatMap((chart) => drawn(chart, results.rows) ?? [])
  const ids = new Set(ofRows.map(({ id }) => id))
  const all = [...ofRows, ...(results.charts ?? []).filter(({ id }) => !ids.has(id))]
  for (const file of await readdir(folder)) {
    if (file.endsWith(".svg")) await rm(new URL(file, folder))
  }
  for (const chart of all) await writeFile(new URL(`${chart.id}.svg`, folder), named(svg(chart)))
  return [
    ...results.chartsAt === undefined
      ? []
      : [`Some charts are from an earlier run (${results.chartsAt.slice(0, 10)}).`],
    ...all.map(({ id, title }) => `![${title}](../benchmarks/results/${id}.svg)`)
  ].join("\n\n")
}

const ofCharts = await draw()
const ofStreams = await streams()
const ofSoak = await soak()
const ofLateness = await lateness()
const ofQuick = await quick()
const ofBounds = await bounds()
const generated: Record<string, () => string> = {
  circumstances,
  tables,
  added,
  profiles,
  sizes,
  ablation,
  charts: () => ofCharts,
  quick: () => ofQuick,
  bounds: () => ofBounds,
  streams: () => ofStreams,
  soak: () => ofSoak,
  lateness: () => ofLateness
}

let text = await readFile(page, "utf8")
for (const [name, make] of Object.entries(generated)) {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from < 0 || to < from) throw new Error(`docs/performance.md lacks ${begin} or ${end}`)
  text = `${text.slice(0, from + begin.length)}\n\n${named(make())}\n\n${text.slice(to)}`
}
await writeFile(page, text)
await format(page)
