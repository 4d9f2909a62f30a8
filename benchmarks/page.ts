/**
 * Writes the tables and charts of the last full run into `docs/performance.md`, between its markers; of the quick run
 * that is compared with, where there is no full one. The quick run has a table of its own, too, as have the streams.
 *
 *     pnpm bench:page
 */
import { readFile, writeFile } from "node:fs/promises"
import { format } from "./lib/format.ts"
import type { Results } from "./lib/results.ts"
import { verdict } from "./lib/row.ts"
import { markdownOf } from "./lib/table.ts"
import type { StreamRow } from "./streams/rows.ts"

const page = new URL("../docs/performance.md", import.meta.url)
const read = (file: string) => readFile(new URL(`results/${file}`, import.meta.url), "utf8")
const full = await read("latest.json").catch(() => undefined)
const results = JSON.parse(
  full ?? await read("quick.json").catch(() => {
    throw new Error("there is no run yet: pnpm bench")
  })
) as Results

const circumstances = () => {
  const { at, machine, peers, versions } = results
  const named = (versions: Readonly<Record<string, string>>) =>
    Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ")
  return [
    ...full === undefined
      ? ["A quick run: three short repetitions, and of the peers redis-semaphore only. `pnpm bench` makes a full one."]
      : [],
    `Run of ${at.slice(0, 10)} on ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGigabytes} GB, ` +
    `${machine.system}. ${named(versions)}.`,
    `Peers: ${Object.values(peers).map((dependencies) => named(dependencies)).join("; ")}.`
  ].join("\n\n")
}

const tables = () => results.rows.map((row) => `### ${row.title}\n\n${markdownOf(row)}`).join("\n\n")

const sizes = () => {
  const { sizes } = results
  if (sizes === undefined) return "Not measured in this run."
  const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`
  return [
    "|  |  |",
    "| --- | ---: |",
    `| import of the mutex on top of effect and ioredis | ${sizes.importMillis} ms |`,
    `| import of everything in both packages | ${sizes.barrelsMillis} ms |`,
    `| a program that only locks, minified and gzip | ${kilobytes(sizes.mutexOnly.gzip)} |`,
    `| the same, brotli | ${kilobytes(sizes.mutexOnly.brotli)} |`,
    `| core + redis without streams, minified and gzip | ${kilobytes(sizes.withoutStreams.gzip)} |`,
    `| the same, brotli | ${kilobytes(sizes.withoutStreams.brotli)} |`,
    `| core + redis with everything, minified and gzip | ${kilobytes(sizes.everything.gzip)} |`,
    `| the same, brotli | ${kilobytes(sizes.everything.brotli)} |`
  ].join("\n")
}

const charts = () =>
  results.charts === undefined
    ? "Not drawn in this run. A full one without `--no-charts` draws them."
    : [
      ...results.chartsAt === undefined ? [] : [`Drawn by runs of their own, of ${results.chartsAt.slice(0, 10)}.`],
      ...results.charts.map(({ id, title }) => `![${title}](../benchmarks/results/${id}.svg)`)
    ].join("\n\n")

interface StreamResults {
  readonly at: string
  readonly rows: ReadonlyArray<StreamRow>
}

const streams = async () => {
  const text = await readFile(new URL("results/streams.json", import.meta.url), "utf8").catch(() => undefined)
  if (text === undefined) return "Not measured yet: `pnpm bench:streams --save`."
  const { at, rows } = JSON.parse(text) as StreamResults
  return [
    `Run of ${at.slice(0, 10)}.`,
    "",
    "|  | median | least | most | bound | samples | lost | longest stall (ms) |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...rows.map(({ bound, longestStallMillis, lost, samples, spread: [least, most], title, unit, value }) =>
      `| ${title} (${unit}) | ${value} | ${least} | ${most} | ${bound ?? ""} | ${samples} | ${lost ?? ""} | ` +
      `${longestStallMillis ?? ""} |`
    )
  ].join("\n")
}

/** The quick run that later ones compare with: it is made with each change of the hot path, a full one seldom. */
const quick = async () => {
  const text = await read("quick.json").catch(() => undefined)
  if (text === undefined) return "Not measured yet: `pnpm bench --quick --save`."
  const { at, machine, rows } = JSON.parse(text) as Results
  const middle = (quartiles: readonly [number, number] | undefined) => quartiles?.join(" to ") ?? ""
  return [
    `Run of ${at.slice(0, 10)} on ${machine.cores} cores of ${machine.cpu}.`,
    "",
    "|  | ours | middle half | raw | middle half | to raw | ours is | CPU stolen |",
    "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
    ...rows.map(({ against, better, ours, quartiles, ratio, raw, stolen, title, unit }) =>
      `| ${title} (${unit}${against === undefined ? "" : `, against ${against}`}) | ${ours} | ${
        middle(quartiles?.ours)
      } | ` +
      `${raw} | ${middle(quartiles?.raw)} | ${ratio} | ${verdict(better, quartiles?.ours, quartiles?.raw) ?? ""} | ` +
      `${stolen === undefined ? "" : `${Math.round(100 * stolen)} %`} |`
    )
  ].join("\n")
}

const ofStreams = await streams()
const ofQuick = await quick()
const generated: Record<string, () => string> = {
  circumstances,
  tables,
  sizes,
  charts,
  quick: () => ofQuick,
  streams: () => ofStreams
}

let text = await readFile(page, "utf8")
for (const [name, make] of Object.entries(generated)) {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from < 0 || to < from) throw new Error(`docs/performance.md lacks ${begin} or ${end}`)
  text = `${text.slice(0, from + begin.length)}\n\n${make()}\n\n${text.slice(to)}`
}
await writeFile(page, text)
await format(page)
