/** All workloads in their order. */
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

export interface Work {
  readonly id: string
  /** Whether two commits can take the places of ours and of raw. */
  readonly comparesCommits?: true
  readonly run: (bench: Bench) => Effect.Effect<Row, unknown, Scope.Scope>
}

export const works: ReadonlyArray<Work> = [
  { id: "uncontended-1", comparesCommits: true, run: (bench) => Uncontended.uncontended(bench, 1) },
  { id: "uncontended-64", comparesCommits: true, run: (bench) => Uncontended.uncontended(bench, 64) },
  { id: "handoff-2", comparesCommits: true, run: (bench) => Handoff.handoff(bench, 2) },
  { id: "handoff-10", comparesCommits: true, run: (bench) => Handoff.handoff(bench, 10) },
  { id: "handoff-100", comparesCommits: true, run: (bench) => Handoff.handoff(bench, 100) },
  { id: "handoff-2-processes", comparesCommits: true, run: Handoff.handoffBetweenProcesses },
  { id: "handoff-cluster", run: Handoff.handoffOnCluster },
  { id: "handoff-link-1", comparesCommits: true, run: (bench) => Handoff.handoffOverLink(bench, 1) },
  { id: "handoff-link-10", comparesCommits: true, run: (bench) => Handoff.handoffOverLink(bench, 10) },
  { id: "throughput-2-processes", comparesCommits: true, run: Handoff.throughputOfProcesses },
  { id: "traced", run: Uncontended.traced },
  { id: "commands-per-handoff-100", run: (bench) => Commands.commands(bench, 100) },
  { id: "renewal-10000-cpu-ms", run: Renewal.renewal },
  { id: "contenders-1000-cpu-ms", run: Contenders.contenders },
  { id: "heap-per-lease-10000", run: Heap.heap },
  { id: "connections-10000", run: Connections.connections },
  { id: "takeover-p99-ms", run: Takeover.takeover },
  { id: "in-process-contended", run: InProcess.inProcess }
]
