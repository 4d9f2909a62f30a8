// Mutation testing: changes the code that makes decisions in one place at a time, and checks whether a test fails.
//
//   pnpm mutants                              all mutants whose code or tests changed since their last run
//   pnpm mutants --area lua-mutex --file handOver.lua,liveWaiters.lua
//   pnpm mutants --sample 50 --seed 7         a random sample of 50 mutants per area
//   pnpm mutants --tests batchScript          runs only the tests in these files
//   pnpm mutants --longest 5000               also runs tests that need more than one second of CPU time
//   pnpm mutants --budget 60000               limits one mutant's tests to this much CPU time, in milliseconds
//   pnpm mutants --minutes 4                  stops after this time; the next run continues
//   pnpm mutants --fresh                      forgets what earlier runs found
//   pnpm mutants --write                      writes the scores into docs/how-it-is-tested.md
//
// Each worker loads all tests once. For each of its mutants, it then runs the tests that reach the mutated place, until
// one fails.
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { commandLine } from "./lib/commandLine.mjs"
import { root } from "./lib/workspace.mjs"
import { areas } from "./mutants/areas.mjs"
import { hash } from "./mutants/luaMutants.mjs"
import { page } from "./mutants/page.mjs"
import { writeScores } from "./mutants/scores.mjs"

const { values } = commandLine({
  options: {
    area: { type: "string" },
    file: { type: "string" },
    tests: { type: "string" },
    sample: { type: "string" },
    seed: { type: "string", default: "1" },
    workers: { type: "string", default: "2" },
    longest: { type: "string", default: "1000" },
    budget: { type: "string", default: "20000" },
    minutes: { type: "string", default: "600" },
    json: { type: "boolean", default: false },
    fresh: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    out: { type: "string", default: join(root, "node_modules/.cache/mutants") }
  }
}, {
  counts: ["sample", "workers", "longest", "budget"],
  positive: ["minutes"],
  names: { area: areas.map(({ name }) => name) }
})

const endsAt = Date.now() + Number(values.minutes) * 60_000

const say = (text) => values.json ? undefined : console.log(text)

mkdirSync(values.out, { recursive: true })

const read = (path) => existsSync(path) ? readFileSync(path, "utf8") : ""

const readLines = (path) => read(path).split("\n").flatMap((line) => line.endsWith("}") ? [JSON.parse(line)] : [])

const toLines = (all) => all.map((line) => `${JSON.stringify(line)}\n`).join("")

const keyOf = ({ file, hash, what }) => `${file} ${what} ${hash}`

/** A random sample of the mutants if `--sample` is set. The seed determines it. */
const sampled = (mutants) =>
  values.sample === undefined
    ? mutants
    : [...mutants].sort((a, b) => rank(a) < rank(b) ? -1 : 1).slice(0, Number(values.sample))

const fileOf = (test) => test.slice(0, test.indexOf(": "))

const rank = ({ file, what }) => hash(`${values.seed} ${file} ${what}`)

/** Runs a worker process until it has finished, a mutant hangs, or the time is up. */
const run = (folder, worker, workers) =>
  new Promise((resolve) => {
    const vitest = join(root, "node_modules/vitest/vitest.mjs")
    const config = join(root, "scripts/mutants/vitest.config.mjs")
    const child = spawn(process.execPath, [vitest, "run", "--config", config], {
      cwd: root,
      env: { ...process.env, MUTANTS_WORK: join(folder, "work.json"), MUTANTS_WORKER: `${worker}/${workers}` },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data) => output = (output + data).slice(-9000))
    }
    const end = () => process.kill(-child.pid, "SIGKILL")
    const timer = setTimeout(end, Math.max(0, endsAt - Date.now()))
    child.on("close", () => {
      clearTimeout(timer)
      resolve(output)
    })
  })

const isWanted = ({ file }) => values.file?.split(",").some((name) => file.endsWith(name)) ?? true

const investigate = async (area) => {
  const { mutants: listed, programs, tests: allTests } = area
  const mutants = listed.map((mutant, id) => ({ ...mutant, id }))
  const equivalents = JSON.parse(readFileSync(join(root, "scripts/mutants/equivalent.json"), "utf8"))
  const isEquivalent = ({ file, what }) => equivalents[file]?.[what] !== undefined
  const wanted = sampled(mutants.filter(isWanted))
  const versions = Object.fromEntries(allTests.map((test) => [test, hash(readFileSync(join(root, test), "utf8"))]))
  const versionOf = (test) => versions[fileOf(test)]

  const path = join(values.out, `${area.name}.json`)
  const saved = values.fresh ? {} : JSON.parse(read(path) || "{}")
  const known = new Map(Object.entries(saved.mutants ?? {}))
  const sources = hash(JSON.stringify([programs, mutants.map(keyOf)]))
  const isValid = ([test, version]) => versionOf(test) === version
  const results = mutants.map((mutant) => {
    const { covering, killed, survived = [] } = known.get(keyOf(mutant)) ?? {}
    return { covering, killed: killed && isValid(killed) ? killed : undefined, survived: survived.filter(isValid) }
  })

  const folder = join(values.out, area.name)
  mkdirSync(folder, { recursive: true })
  const found = join(folder, "found.jsonl")
  const coverage = join(folder, "coverage.jsonl")
  const save = () => {
    mutants.forEach((mutant, id) => known.set(keyOf(mutant), results[id]))
    const lines = readLines(coverage).map((line) => ({ ...line, version: versionOf(line.test) }))
    writeFileSync(path, JSON.stringify({ sources, coverage: lines, loaded, mutants: Object.fromEntries(known) }))
  }
  const covered = saved.sources === sources
    ? saved.coverage.filter(({ millis, test, version }) =>
      versionOf(test) === version && (millis < 60_000 || Number(values.longest) < 60_000)
    )
    : []
  /** The test files whose coverage is known, each with the version that was measured. */
  const loaded = saved.sources === sources ? { ...saved.loaded } : {}
  const useful = new Set(
    covered.flatMap(({ millis, places, test }) =>
      places.length > 0 && millis <= Number(values.longest) ? [fileOf(test)] : []
    )
  )
  /** Skips test files that are known to reach no mutated place. */
  const idle = (path) => !useful.has(path) && loaded[path] === versions[path]
  const tests = allTests.filter((path) =>
    (values.tests === undefined || values.tests.split(",").some((name) => path.includes(`/${name}.`))) && !idle(path)
  )
  writeFileSync(coverage, toLines(covered))
  writeFileSync(found, "")
  const open = wanted.filter((mutant) => !isEquivalent(mutant)).map(({ id }) => id)
  const alive = () => open.filter((id) => results[id].killed === undefined)
  const workers = Math.min(Number(values.workers), alive().length)
  const work = {
    mutants,
    open: alive(),
    programs,
    tests,
    out: folder,
    limit: 500,
    longest: Number(values.longest),
    budget: Number(values.budget)
  }
  writeFileSync(join(folder, "work.json"), JSON.stringify(work))
  writeFileSync(
    found,
    toLines(work.open.flatMap((id) => results[id].survived.map(([test]) => ({ how: "survived", id, test }))))
  )
  const startedAt = Date.now()
  say(`${area.name}: ${wanted.length} mutants, ${alive().length} to run`)

  let [readTo, saidAt] = [readLines(found).length, Date.now()]
  const decided = new Set()
  const collect = () => {
    const lines = readLines(found)
    for (const { covering, how, id, survived, test } of lines.slice(readTo)) {
      const entry = test === undefined ? undefined : [test, versionOf(test)]
      if (how === "began") { for (const path of tests) loaded[path] = versions[path] }
      if (how === "killed" || how === "undecided") decided.add(id)
      if (how === "killed") results[id].killed = entry
      else if (how === "undecided") {
        results[id].covering = covering
        results[id].survived.push(...survived.map((test) => [test, versionOf(test)]))
      } else if (how === "unrepeatable" || how === "disturbed") say(`  ${how}: ${test}`)
    }
    readTo = lines.length
    if (Date.now() - saidAt < 20_000) return
    saidAt = Date.now()
    const survivors = [...decided].filter((id) => results[id].killed === undefined).length
    say(`  ${decided.size} of ${work.open.length}, of which ${survivors} survive`)
    save()
  }
  const watch = setInterval(collect, 2000)
  /** A mutant that crashed its worker counts as killed. */
  const conclude = (worker) => {
    const lines = readLines(found)
    const last = new Map()
    for (const line of lines) if (line.how === "begun") last.set(line.id, line.test)
    const stuck = lines.filter(({ how, id }) => how === "stuck" && !decided.has(id))
    for (const { id } of stuck) {
      const line = { how: "killed", id, test: last.get(id), worker }
      writeFileSync(found, JSON.stringify(line) + "\n", { flag: "a" })
    }
    const disturbed = lines.filter(({ how, id }) => how === "disturbed" && !decided.has(id))
    for (const { id, test } of disturbed) {
      writeFileSync(found, JSON.stringify({ how: "survived", id, test, worker }) + "\n", { flag: "a" })
    }
    collect()
  }
  await Promise.all(Array.from({ length: workers }, async (_, worker) => {
    let idle = 0
    for (;;) {
      const before = readLines(found).length
      const output = await run(folder, worker, workers)
      conclude(worker)
      writeFileSync(join(folder, `${worker}.log`), output)
      if (readLines(found).some((line) => line.how === "finished" && line.worker === worker)) return
      if (Date.now() > endsAt) return
      idle = readLines(found).length === before ? idle + 1 : 0
      if (idle === 3) throw new Error(`the tests did not start: ${output}`)
    }
  }))
  clearInterval(watch)
  collect()
  save()
  const isDone = (id) => results[id].killed !== undefined || results[id].covering !== undefined
  const survivors = open.filter((id) => results[id].killed === undefined && results[id].covering > 0)
  const reached = open.filter((id) => results[id].killed !== undefined || results[id].covering > 0)
  for (const id of survivors) say(`  ${mutants[id].file}:${mutants[id].line}  ${mutants[id].what}`)
  const seconds = Math.round((Date.now() - startedAt) / 1000)
  const killed = reached.length - survivors.length
  const equivalent = wanted.length - open.length
  const left = open.filter((id) => !isDone(id)).length
  say(
    `${area.name}: ${wanted.length} mutants, ${killed} killed, ${equivalent} equivalent, ${survivors.length} survive, ` +
      `${open.length - reached.length - left} in code that no test runs, ${left} not run yet, ${seconds} s`
  )
  return {
    area: area.name,
    listed: mutants.length,
    mutants: wanted.length,
    killed,
    equivalent,
    uncovered: open.length - reached.length - left,
    left,
    all: open.filter(isDone).map((id) => ({ ...mutants[id], ...results[id] }))
  }
}

const chosen = areas.filter(({ name }) => values.area === undefined || values.area.split(",").includes(name))
  .map(({ make, name }) => ({ name, ...make() }))
const isMutated = (name) => chosen.some(({ mutants }) => mutants.some(({ file }) => file.endsWith(name)))
const unknown = values.file?.split(",").find((name) => !isMutated(name))
if (unknown !== undefined) {
  console.error(`no mutated file is called "${unknown}"`)
  process.exit(2)
}
const reports = []
for (const area of chosen) reports.push(await investigate(area))
const report = join(values.out, "report.html")
writeFileSync(report, page(reports))
say(`the report: ${report}`)
if (values.write) writeScores(reports, Number(values.longest))
if (values.json) {
  const counts = reports.map(({ area, equivalent, killed, mutants }) => ({ area, mutants, killed, equivalent }))
  console.log(JSON.stringify({ areas: counts }))
}
