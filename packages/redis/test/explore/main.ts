/**
 * Runs small programs under every schedule with a limited number of deviations, or replays one schedule:
 *
 *     pnpm explore --deviations 2
 *     pnpm explore --scope two --deviations 3
 *     pnpm explore --scope two --schedule "4 c1 request lost, 9 c2 killed"
 *
 * Results are stored in a folder, so an interrupted exploration resumes where it stopped unless the code has changed.
 * `--fresh` starts over. `--write` writes the counts to docs/how-it-is-tested.md.
 */
import { Simulation } from "@effect-simba/testkit"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { commandLine } from "../../../../scripts/lib/commandLine.mjs"
import { scopes } from "./scopes.ts"
import type { Found, Part } from "./worker.ts"

const { values } = commandLine({
  options: {
    scope: { type: "string" },
    deviations: { type: "string", default: "2" },
    schedule: { type: "string" },
    workers: { type: "string", default: String(availableParallelism()) },
    json: { type: "boolean", default: false },
    fresh: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    out: { type: "string", default: join(tmpdir(), "effect-simba-explore") }
  }
}, { counts: ["workers"], whole: ["deviations"], names: { scope: Object.keys(scopes) } })

const names = values.scope === undefined ? Object.keys(scopes) : values.scope.split(",")
const deviations = Number(values.deviations)

if (values.schedule !== undefined && (values.scope === undefined || names.length > 1)) {
  console.error("--schedule needs exactly one --scope")
  process.exit(2)
}

const say = (text: string) => values.json ? undefined : console.log(text)

mkdirSync(values.out, { recursive: true })

const save = (name: string, result: Simulation.Result) => {
  const path = join(values.out, name)
  const history = Simulation.report(result, { format: "trace" })
  writeFileSync(`${path}.txt`, [Simulation.report(result), "", "full history:", history, ""].join("\n"))
  writeFileSync(`${path}.svg`, Simulation.report(result, { format: "svg" }))
  say(`full history: ${path}.txt, as a picture: ${path}.svg`)
}

const replay = async (name: string, schedule: string) => {
  const result = await Effect.runPromise(Simulation.replay(scopes[name]!.plan, schedule))
  say(Simulation.report(result))
  save(name, result)
  return result.violations.length
}

/** Returns a hash of the code, because stored results are valid only for the same code. */
const version = () => {
  const packages = fileURLToPath(new URL("../../../", import.meta.url))
  const hash = createHash("sha256")
  for (
    const folder of [
      "core/src",
      "redis/src",
      "testkit/src",
      "fake-redis/src",
      "redis/test/explore",
      "redis/test/simulate"
    ]
  ) {
    for (const name of readdirSync(join(packages, folder), { recursive: true, encoding: "utf8" }).sort()) {
      if (/\.(ts|lua)$/.test(name)) hash.update(readFileSync(join(packages, folder, name)))
    }
  }
  return hash.digest("base64url").slice(0, 8)
}

/** Loads a scope's finished parts, keyed by their first deviation. */
const load = (path: string): Map<string, Found> => {
  if (values.fresh) return new Map()
  try {
    return new Map(JSON.parse(readFileSync(path, "utf8")) as ReadonlyArray<[string, Found]>)
  } catch {
    return new Map()
  }
}

const startedAt = performance.now()
const code = version()
const total = { schedules: 0, states: 0, violations: 0 }
const rows: Array<string> = []

const inThousands = (count: number) => count.toLocaleString("en-US")

const writeTable = () => {
  const path = fileURLToPath(new URL("../../../../docs/how-it-is-tested.md", import.meta.url))
  const text = readFileSync(path, "utf8")
  const [begin, end] = ["<!-- explored: pnpm explore --write -->", "<!-- end of explored -->"]
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  const head = ["| program | schedules | skipped | histories | violations |", "| --- | --- | --- | --- | --- |"]
  const { schedules, states, violations } = total
  const foot = `| all | ${inThousands(schedules)} | | ${inThousands(states)} | ${violations} |`
  writeFileSync(path, `${text.slice(0, from)}\n\n${[...head, ...rows, foot].join("\n")}\n\n${text.slice(to)}`)
}

const explore = async (name: string, workers: ReadonlyArray<Worker>) => {
  const { plan, what } = scopes[name]!
  const path = join(values.out, `${name}-${deviations}-${code}.json`)
  const begunAt = performance.now()
  const root = await Effect.runPromise(Simulation.explore(plan, { deviations: 0, all: true }))
  const done = load(path)
  const { branches } = root
  const left = deviations === 0 ? [] : branches.filter((within) => !done.has(within))
  /** The relative size of each part. Deviations are in order, so a later first deviation leaves fewer schedules. */
  const sizes = new Map(branches.map((within, i) => [within, (branches.length - i) ** (deviations - 1)]))
  const size = left.reduce((sum, within) => sum + sizes.get(within)!, 0)
  let passed = 0
  let saidAt = begunAt
  await Promise.all(workers.map((worker) =>
    new Promise<void>((resolve) => {
      const next = () => {
        const within = left.shift()
        if (within === undefined) return resolve()
        worker.once("message", (found: Found) => {
          done.set(within, found)
          passed += sizes.get(within)!
          writeFileSync(path, JSON.stringify([...done]))
          const now = performance.now()
          if (now - saidAt > 5000) {
            saidAt = now
            const minutes = (now - begunAt) / passed * (size - passed) / 60_000
            say(`  ${done.size} of ${branches.length} parts, about ${minutes.toFixed(1)} minutes left`)
          }
          next()
        })
        worker.postMessage({ scope: name, within, deviations } satisfies Part)
      }
      next()
    })
  ))
  const parts = [root, ...(deviations === 0 ? [] : branches.map((within) => done.get(within)!))]
  const sum = (of: "schedules" | "skipped" | "states" | "violations") => parts.reduce((all, part) => all + part[of], 0)
  const [schedules, states, violations] = [sum("schedules"), sum("states"), sum("violations")]
  total.schedules += schedules
  total.states += states
  total.violations += violations
  const seconds = ((performance.now() - begunAt) / 1000).toFixed(1)
  const skipped = deviations === 0 ? 0 : sum("skipped")
  say(
    `${name} (${what}): ${schedules} schedules, ${skipped} skipped, ${states} histories, ` +
      `${violations} violations, ${seconds} s`
  )
  rows.push(
    `| \`${name}\`: ${what} | ${[schedules, skipped, states, violations].map(inThousands).join(" | ")} |`
  )
  const failures = [...done.values()].flatMap(({ first }) => first === undefined ? [] : [first])
  if (root.first !== undefined) failures.push(["", root.first.violations[0]!.message])
  const lengthOf = (schedule: string) => schedule === "" ? 0 : schedule.split(",").length
  const shortest = failures.sort(([a], [b]) => lengthOf(a) - lengthOf(b))[0]
  if (shortest === undefined) return
  say(`  "${shortest[0]}": ${shortest[1]}`)
  await replay(name, shortest[0])
  say(`replay: pnpm explore --scope ${name} --schedule "${shortest[0]}"`)
}

if (values.schedule !== undefined) {
  const violations = await replay(names[0]!, values.schedule).catch((error: unknown) => {
    if (!(error instanceof RangeError)) throw error
    console.error(error.message)
    process.exit(2)
  })
  process.exitCode = violations === 0 ? 0 : 1
} else {
  const workers = Array.from(
    { length: Number(values.workers) },
    () => new Worker(new URL("./worker.ts", import.meta.url))
  )
  for (const name of names) await explore(name, workers)
  await Promise.all(workers.map((worker) => worker.terminate()))
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const { system, user } = process.cpuUsage()
  const used = ((system + user) / 1e6).toFixed(1)
  say(
    `${total.schedules} schedules, ${total.states} histories, ${total.violations} violations, ${seconds} s, ` +
      `${used} s of CPU time`
  )
  if (values.write) writeTable()
  if (values.json) console.log(JSON.stringify(total))
  process.exitCode = total.violations === 0 ? 0 : 1
}
