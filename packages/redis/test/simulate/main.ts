/**
 * Runs many seeds of a plan or replays one:
 *
 *     pnpm simulate --plan mutex --seeds 1000 --from 1
 *     pnpm simulate --plan mutex --seed 17 --verbose
 *
 * The first failing seed is shrunk to a short history, which is written to a text file and to an SVG file.
 */
import { Simulation } from "@effect-simba/testkit"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { commandLine } from "../../../../scripts/lib/commandLine.mjs"
import { plans } from "./plans.ts"
import type { Report, Task } from "./worker.ts"

const { values } = commandLine({
  options: {
    plan: { type: "string", default: "mutex" },
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    verbose: { type: "boolean", default: false },
    workers: { type: "string", default: String(Math.min(availableParallelism(), 8)) },
    out: { type: "string", default: join(tmpdir(), "effect-simba-simulate") }
  }
}, { counts: ["seeds", "workers"], whole: ["from"], name: { plan: Object.keys(plans) } })

const plan = plans[values.plan]!

const save = (result: Simulation.Result) => {
  mkdirSync(values.out, { recursive: true })
  const path = join(values.out, `${values.plan}-${result.seed}`)
  writeFileSync(
    `${path}.txt`,
    [Simulation.report(result), "", "full history:", Simulation.report(result, { format: "trace" }), ""].join("\n")
  )
  writeFileSync(`${path}.svg`, Simulation.report(result, { format: "svg" }))
  return path
}

/** Returns a link to the history in the playground, which `npm run playground` serves. */
const linkOf = ({ clients, duration, enabled, seed }: Simulation.Result) => {
  const query = new URLSearchParams({
    plan: values.plan,
    seed: String(seed),
    clients: String(clients),
    duration: String(duration),
    enabled: enabled.join(",")
  })
  return `http://127.0.0.1:4174/#${query}`
}

const explain = (seed: number | string) =>
  Effect.gen(function*() {
    const options = plan(seed)
    const result = yield* Simulation.run(options)
    if (values.verbose) console.log(Simulation.report(result, { format: "trace" }))
    if (result.violations.length === 0) {
      console.log(Simulation.report(result))
      return result
    }
    const shortest = yield* Simulation.shrink(options, result)
    console.log(Simulation.report(shortest))
    const path = save(shortest)
    console.log(`full history: ${path}.txt, as a picture: ${path}.svg`)
    console.log(`replay: pnpm simulate --plan ${values.plan} --seed ${seed} --verbose`)
    console.log(`view, after \`npm run playground\`: ${linkOf(shortest)}`)
    return result
  })

const sweep = async () => {
  const first = Number(values.from)
  const count = Number(values.seeds)
  const stride = Math.min(Number(values.workers), count)
  const startedAt = performance.now()
  const reports: Array<Report> = []
  await Promise.all(Array.from({ length: stride }, (_, index) =>
    new Promise<void>((resolve, reject) => {
      const task: Task = { plan: values.plan, first: first + index, last: first + count - 1, stride }
      const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: task })
      worker.on("message", (report: Report) => {
        reports.push(report)
        if (report.violation !== undefined) console.log(`seed ${report.seed}: ${report.violation}`)
        else if (values.verbose) console.log(`seed ${report.seed}: ${report.commands} commands`)
      })
      worker.on("error", reject)
      worker.on("exit", (code) => code === 0 ? resolve() : reject(new Error(`a worker exited with code ${code}`)))
    })))
  const millis = performance.now() - startedAt
  const failed = reports.filter(({ violation }) => violation !== undefined).map(({ seed }) => seed).sort((a, b) =>
    a - b
  )
  if (failed.length > 0) await Effect.runPromise(explain(failed[0]!))
  const virtual = reports.reduce((sum, { virtualMillis }) => sum + virtualMillis, 0)
  console.log(
    `${(virtual / 1000).toFixed(0)} virtual seconds, ${(virtual / millis).toFixed(0)} times faster than real time`
  )
  const handOvers = reports.reduce((sum, { handOvers }) => sum + handOvers, 0)
  const longest = Math.max(...reports.map(({ longestFreeWait }) => longestFreeWait))
  if (handOvers > 0) {
    console.log(`${handOvers} hand-offs, longest wait for a free mutex: ${longest.toFixed(0)} ms`)
  }
  const rate = Math.round(reports.length / millis * 60_000)
  const violations = reports.reduce((sum, { violations }) => sum + violations, 0)
  const where = failed.length === 0 ? "" : ` in ${failed.length} seeds`
  console.log(`${reports.length} seeds, ${violations} violations${where}, ${rate} seeds/min`)
  return failed.length
}

const failures = values.seed === undefined
  ? await sweep()
  : (await Effect.runPromise(explain(values.seed))).violations.length
process.exitCode = failures === 0 ? 0 : 1
