/**
 * The command `pnpm nemesis`: runs real processes on real Redis servers under random faults, and checks their history.
 *
 *     pnpm nemesis --topology single|sentinel|cluster --minutes 10 --seed 7
 *
 * - `--plan mutex|streams|jobs|all` selects the programs. `jobs` runs five processes, one of them with a wrong clock,
 *   and also kills the leader at the scheduled times of its jobs.
 * - `--plant unfenced|deaf` plants a defect that the checkers must find.
 * - `--only stop,block` selects faults by their names in the printed table.
 * - `--out` is the folder for histories and pictures. `--judge` with such a folder checks its history again.
 */
import { Effect } from "effect"
import { cpSync, existsSync, mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { commandLine } from "../../../../scripts/lib/commandLine.mjs"
import { faultsOf } from "./faults.ts"
import { table as jobsTable } from "./jobs.ts"
import { table } from "./picture.ts"
import { outcomeIn, plans, run } from "./run.ts"
import { kinds } from "./topology.ts"
import { plants } from "./worker.ts"

const { values } = commandLine({
  options: {
    topology: { type: "string", default: "single" },
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    plan: { type: "string", default: "all" },
    plant: { type: "string" },
    only: { type: "string" },
    json: { type: "boolean", default: false },
    judge: { type: "string" },
    out: { type: "string", default: join(tmpdir(), "effect-simba-nemesis") }
  }
}, {
  whole: ["seed"],
  positive: ["minutes"],
  name: { topology: kinds, plan: plans, plant: plants },
  names: { only: kinds.flatMap((kind) => Object.values(faultsOf(kind, true)).flat().map(([name]) => name)) }
})

if (values.judge !== undefined && !existsSync(join(values.judge, "run.json"))) {
  console.error(`${values.judge} does not contain a run's history`)
  process.exit(2)
}
const topology = kinds.find((kind) => kind === values.topology)!
const plan = plans.find((plan) => plan === values.plan)!
const plant = plants.find((plant) => plant === values.plant)
const seed = Number(values.seed)
const seconds = Number(values.minutes) * 60

const outcome = await Effect.runPromise(
  values.judge === undefined
    ? Effect.scoped(run({ topology, plan, seed, seconds, plant, only: values.only?.split(",") }))
    : outcomeIn(values.judge)
)
const { faults, hasRates, holds, messages, violations } = outcome

const folder = values.judge ?? join(values.out, `${topology}-${plan}-${seed}`)
if (values.judge === undefined) {
  mkdirSync(values.out, { recursive: true })
  cpSync(outcome.folder, folder, { recursive: true })
}

console.log(table(outcome))
if (plan === "jobs") console.log(`\n${jobsTable(outcome.lines, outcome.judgements[0]!.events)}\n`)
for (const violation of violations.slice(0, 40)) console.log(`VIOLATION ${violation}`)
if (!hasRates) {
  console.log("libfaketime is not installed: all processes shared one wall clock (Debian: apt-get install faketime)")
}
console.log(
  `${outcome.name}: ${outcome.seconds} s of faults, ${faults.length} faults, ${holds} holds, ` +
    `${messages} messages, ${violations.length} violations; ${folder}`
)
if (values.json) console.log(JSON.stringify({ violations: violations.length, holds, messages, faults: faults.length }))
process.exitCode = violations.length === 0 ? 0 : 1
