/** Defines all workloads, in the order in which they run, and the charts for their rows. */
import type { Effect, Scope } from "effect"
import * as Commands from "../work/commands.ts"
import * as Connections from "../work/connections.ts"
import * as Contenders from "../work/contenders.ts"
import * as Handoff from "../work/handoff.ts"
import * as Heap from "../work/heap.ts"
import * as InProcess from "../work/inProcess.ts"
import * as Renewal from "../work/renewal.ts"
import * as Takeover from "../work/takeover.ts"
import * as Uncontended from "../work/uncontended.ts"
import type { Bench } from "./bench.ts"
import type { Row } from "./row.ts"
import type { RowChart } from "./rowChart.ts"

export interface Work {
  readonly id: string
  /** Whether the workload can compare two commits. */
  readonly comparesCommits?: true
  /** Whether the row is only a point in a chart, without a table on the page. */
  readonly isForCharts?: true
  readonly run: (bench: Bench) => Effect.Effect<Row, unknown, Scope.Scope>
}

const handoff = (setup: Handoff.Setup): Work => ({
  id: setup.id,
  comparesCommits: true,
  run: Handoff.handoff(setup)
})
const throughput = (setup: Handoff.Setup): Work => ({
  id: setup.id,
  comparesCommits: true,
  run: Handoff.throughput(setup)
})
const forCharts = (work: Work): Work => ({ id: work.id, isForCharts: true, run: work.run })
const contended = "contended mutex, empty bodies"

export const works: ReadonlyArray<Work> = [
  { id: "uncontended-1", comparesCommits: true, run: (bench) => Uncontended.uncontended(bench, 1) },
  { id: "uncontended-64", comparesCommits: true, run: (bench) => Uncontended.uncontended(bench, 64) },
  ...[2, 10, 100].map((contenders) =>
    handoff({
      id: `handoff-${contenders}`,
      title: `hand-off, p50, ${contenders} contenders for one mutex`,
      contenders,
      entrants: contenders === 10 ? "everybody" : "closest"
    })
  ),
  { id: "handoff-10-started", run: Handoff.started },
  forCharts(handoff({
    id: "handoff-1000",
    title: "hand-off, p50, 1,000 contenders for one mutex",
    contenders: 1000,
    entrants: "closest"
  })),
  handoff({
    id: "handoff-2-processes",
    title: "hand-off between two processes, p50",
    contenders: 1,
    processes: 2,
    entrants: "closest"
  }),
  forCharts(handoff({
    id: "handoff-4-processes",
    title: "hand-off between four processes, p50",
    contenders: 1,
    processes: 4,
    entrants: "closest"
  })),
  { id: "handoff-cluster", run: Handoff.handoffOnCluster },
  ...[1, 10].map((linkMillis) =>
    handoff({
      id: `handoff-link-${linkMillis}`,
      title: `hand-off, p50, 10 contenders, link with ${linkMillis} ms round trip`,
      contenders: 10,
      linkMillis,
      entrants: "closest"
    })
  ),
  throughput({
    id: "throughput-2-processes",
    title: `${contended}, two processes with 8 contenders each`,
    contenders: 8,
    processes: 2,
    entrants: "closest"
  }),
  throughput({
    id: "shared-2-processes",
    title: `${contended}, two processes with 8 fibers and one layer each`,
    contenders: 8,
    processes: 2,
    isShared: true,
    entrants: "closest"
  }),
  { id: "shared-turns-link-1", run: Handoff.sharedTurns },
  ...[1, 4].map((processes) =>
    forCharts(throughput({
      id: `throughput-${processes}-processes`,
      title: `${contended}, ${processes} processes with 16 contenders in all`,
      contenders: 16 / processes,
      processes,
      entrants: "closest"
    }))
  ),
  ...[2, 10, 100, 1000].map((contenders) =>
    forCharts(throughput({
      id: `throughput-${contenders}`,
      title: `${contended}, ${contenders} contenders in one process`,
      contenders,
      entrants: "closest"
    }))
  ),
  ...[1, 10].map((linkMillis) =>
    forCharts(throughput({
      id: `throughput-link-${linkMillis}`,
      title: `${contended}, 10 contenders, link with ${linkMillis} ms round trip`,
      contenders: 10,
      linkMillis,
      entrants: "closest"
    }))
  ),
  { id: "traced", run: Uncontended.traced },
  ...[2, 10, 100, 1000].map((contenders): Work => ({
    id: `commands-per-handoff-${contenders}`,
    run: Commands.commands(contenders)
  })),
  { id: "renewal-10000-cpu-ms", run: Renewal.renewal },
  { id: "contenders-1000-cpu-ms", run: Contenders.contenders },
  { id: "heap-per-lease-10000", run: Heap.heap },
  { id: "connections-10000", run: Connections.connections },
  { id: "takeover-p99-ms", run: Takeover.takeover },
  { id: "in-process-contended", run: InProcess.inProcess }
]

/** Returns whether a quick run omits the row. */
export const isThorough = ({ id, isForCharts }: Work): boolean =>
  isForCharts === true || /^(?:commands-per-handoff-(?:2|10|1000)|handoff-10-started)$/.test(id)

const contenders = "contenders for one mutex"
const latency = "ms added to a round trip, 10 contenders"
const [ms, holders] = ["ms, p50", "holders/s"]

/** The hand-off and throughput charts for effect-simba, raw and the closest peers. */
export const charts: ReadonlyArray<RowChart> = [
  {
    id: "handoff-by-contenders",
    title: "From a release to the next holder, by contenders",
    x: { label: contenders, isLogarithmic: true },
    y: { label: ms, isLogarithmic: true },
    points: [[2, "handoff-2"], [10, "handoff-10"], [100, "handoff-100"], [1000, "handoff-1000"]]
  },
  {
    id: "handoff-by-latency",
    title: "From a release to the next holder, by latency",
    x: { label: latency, isLogarithmic: false },
    y: { label: ms, isLogarithmic: true },
    points: [[0, "handoff-10"], [1, "handoff-link-1"], [10, "handoff-link-10"]]
  },
  {
    id: "handoff-by-processes",
    title: "From a release to the next holder, by processes",
    x: { label: "processes with one contender each (1: two contenders)", isLogarithmic: false },
    y: { label: ms, isLogarithmic: true },
    points: [[1, "handoff-2"], [2, "handoff-2-processes"], [4, "handoff-4-processes"]]
  },
  {
    id: "throughput-by-contenders",
    title: "Contended mutex, empty bodies, by contenders",
    x: { label: contenders, isLogarithmic: true },
    y: { label: holders, isLogarithmic: true },
    points: [[2, "throughput-2"], [10, "throughput-10"], [100, "throughput-100"], [1000, "throughput-1000"]]
  },
  {
    id: "throughput-by-latency",
    title: "Contended mutex, empty bodies, by latency",
    x: { label: latency, isLogarithmic: false },
    y: { label: holders, isLogarithmic: true },
    points: [[0, "throughput-10"], [1, "throughput-link-1"], [10, "throughput-link-10"]]
  },
  {
    id: "throughput-by-processes",
    title: "Contended mutex, empty bodies, by processes",
    x: { label: "processes, 16 contenders in all", isLogarithmic: false },
    y: { label: holders, isLogarithmic: true },
    points: [[1, "throughput-1-processes"], [2, "throughput-2-processes"], [4, "throughput-4-processes"]]
  },
  {
    id: "commands-by-contenders",
    title: "Commands for each hand-off",
    x: { label: contenders, isLogarithmic: true },
    y: { label: "commands", isLogarithmic: true },
    points: [2, 10, 100, 1000].map((contenders) => [contenders, `commands-per-handoff-${contenders}`])
  },
  {
    id: "bytes-by-contenders",
    title: "Bytes for each hand-off",
    x: { label: contenders, isLogarithmic: true },
    y: { label: "bytes", isLogarithmic: true },
    column: "bytes",
    points: [2, 10, 100, 1000].map((contenders) => [contenders, `commands-per-handoff-${contenders}`])
  }
]
