/**
 * The bounds on the mutex's figures, mostly relative to raw, and whether a run meets them. `page` writes them into the
 * documentation, and `main` prints them.
 */
import type { Profile } from "../work/profile.ts"
import type { Results } from "./results.ts"
import type { Row } from "./row.ts"
import { aligned } from "./table.ts"

interface Figure {
  readonly title: string
  readonly unit: string
  readonly value: number
  /** The largest or the smallest allowed value. */
  readonly most?: number
  readonly least?: number
}

const columnOf = (row: Row, title: string, name: string) =>
  row.columns?.find((column) => column.title === title)?.values[name] ?? Number.NaN

const cpuRatio = (row: Row) => columnOf(row, "node CPU, us each", "ours") / columnOf(row, "node CPU, us each", "raw")

/** Returns the ratio to the best peer. */
const toPeers = (row: Row) => {
  const values = row.others.flatMap(({ role, value }) => role === "peer" && value !== undefined ? [value] : [])
  return values.length === 0 ? Number.NaN : row.ours / Math.max(...values)
}

const variant = (row: Row, name: string) => row.others.find((other) => other.name === name)?.ratio ?? Number.NaN

type Read = (row: Row) => ReadonlyArray<Omit<Figure, "title"> & { readonly title?: string }>

const added = (most: number): Read => (row) => [
  { title: `${row.title}: added to raw`, unit: "us", value: 1000 * (row.ours - row.raw), most },
  { title: `${row.title}: relative to raw`, unit: "times", value: row.ratio }
]

const counted: Read = (row) => [
  { unit: "commands", value: row.ours, most: 2.05 },
  { unit: "bytes", value: columnOf(row, "bytes", "ours"), most: 700 }
]

const free: Read = (row) => [
  { title: `${row.title}: relative to raw`, unit: "times", value: row.ratio },
  { title: `${row.title}: relative to the best peer`, unit: "times", value: toPeers(row), least: 1 },
  { title: `${row.title}: CPU of the process relative to raw`, unit: "times", value: cpuRatio(row), most: 1.2 },
  { title: `${row.title}: added to raw`, unit: "us", value: 1e6 / row.ours - 1e6 / row.raw }
]

/** The bounds, by row id. */
const rowBounds: Readonly<Record<string, Read>> = {
  "commands-per-handoff-2": counted,
  "commands-per-handoff-10": counted,
  "commands-per-handoff-100": counted,
  "shared-2-processes": (row) => [
    { title: `${row.title}: relative to raw`, unit: "times", value: row.ratio, least: 1 },
    { title: `${row.title}: relative to the best peer`, unit: "times", value: toPeers(row), least: 1 },
    {
      title: `${row.title}: strict order relative to raw`,
      unit: "times",
      value: variant(row, "ours, strict order"),
      least: 0.5
    }
  ],
  "throughput-2-processes": (row) => [
    { title: `${row.title} and a layer each: relative to raw`, unit: "times", value: row.ratio, least: 0.5 }
  ],
  "shared-turns-link-1": (row) => [
    { unit: "holders/s", value: row.ours },
    { title: `${row.title}: relative to strict order`, unit: "times", value: row.ratio, least: 1.6 }
  ],
  "handoff-2": added(60),
  "handoff-10": added(60),
  "handoff-100": added(60),
  "handoff-2-processes": added(120),
  "handoff-link-1": (row) => [{ title: `${row.title}: relative to raw`, unit: "times", value: row.ratio, most: 1.12 }],
  "uncontended-1": free,
  "uncontended-64": free,
  "renewal-10000-cpu-ms": (
    row
  ) => [{ title: `${row.title}: relative to raw`, unit: "times", value: row.ratio, most: 1.5 }]
}

/** The largest allowed ratio of Redis's time in our scripts to its time in raw's scripts, by profile id. */
const profileBounds: Readonly<Record<string, number>> = { "uncontended-1": 1.6, "handoff-10": 2.5 }

export const rowIds = Object.keys(rowBounds)
export const profileIds = Object.keys(profileBounds)

const ofProfile = ({ figures, id, title }: Profile): ReadonlyArray<Figure> =>
  figures.flatMap(([name, ours, raw]) =>
    name === "Redis: time in them, us"
      ? [{
        title: `${title}: Redis's time in scripts relative to raw`,
        unit: "times",
        value: ours / raw,
        most: profileBounds[id]!
      }]
      : []
  )

const figuresOf = ({ profiles = [], rows }: Results): ReadonlyArray<Figure> => [
  ...rows.flatMap((row) => rowBounds[row.id]?.(row).map((figure) => ({ title: row.title, ...figure })) ?? []),
  ...profiles.flatMap(ofProfile)
]

const number = (value: number) => Number.isNaN(value) ? "-" : String(Number(value.toPrecision(3)))

const metOrNot = ({ least, most, value }: Figure) =>
  (least === undefined && most === undefined) || Number.isNaN(value)
    ? ""
    : value <= (most ?? Infinity) && value >= (least ?? -Infinity)
    ? "met"
    : "not met"

const lines = (results: Results): ReadonlyArray<ReadonlyArray<string>> =>
  figuresOf(results).map((figure) => [
    `${figure.title} (${figure.unit})`,
    number(figure.value),
    figure.most !== undefined ? `at most ${figure.most}` : figure.least !== undefined ? `at least ${figure.least}` : "",
    metOrNot(figure)
  ])

const head = ["", "measured", "bound", ""]

export const readable = (results: Results): string => aligned([head, ...lines(results)])

export const markdown = (results: Results): string =>
  [head, ["---", "---:", "---:", "---"], ...lines(results)].map((cells) => `| ${cells.join(" | ")} |`).join("\n")
