// Changes the code that decides in one place at a time, and asks whether a test notices:
//
//   pnpm mutants                              all areas, what changed since the last run
//   pnpm mutants --area lua-mutex --file handOver.lua
//   pnpm mutants --sample 50 --seed 7         so many of each area
//   pnpm mutants --tests batchScript          in the tests of these files only
//   pnpm mutants --longest 60000              in tests that compute for longer than 5 seconds, too
//   pnpm mutants --fresh                      forgets what earlier runs found
//
// A mutant runs in one process with all others, in each test that reaches its place, until a test fails.
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { root } from "./lib/workspace.mjs"
import { areas } from "./mutants/areas.mjs"
import { hash } from "./mutants/luaMutants.mjs"
import { page } from "./mutants/page.mjs"

const { values } = parseArgs({
  options: {
    area: { type: "string" },
    file: { type: "string" },
    tests: { type: "string" },
    sample: { type: "string" },
    seed: { type: "string", default: "1" },
    workers: { type: "string", default: "2" },
    quick: { type: "string", default: "100" },
    longest: { type: "string", default: "5000" },
    json: { type: "boolean", default: false },
    fresh: { type: "boolean", default: false },
    out: { type: "string", default: join(root, "node_modules/.cache/mutants") }
  }
})

const say = (text) => values.json ? undefined : console.log(text)

mkdirSync(values.out, { recursive: true })

const read = (path) => existsSync(path) ? readFileSync(path, "utf8") : ""

const keyOf = ({ file, hash, what }) => `${file} ${what} ${hash}`

/** The first `count` in an order that the seed decides. */
const sampled = (mutants) =>
  values.sample === undefined
    ? mutants
    : [...mutants].sort((a, b) => rank(a) < rank(b) ? -1 : 1).slice(0, Number(values.sample))

const rank = ({ file, what }) => hash(`${values.seed} ${file} ${what}`)

/** A run ends early when a mutant never ends; then the next goes on. */
const run = (config) =>
  new Promise((resolve) => {
    const vitest = join(root, "node_modules/vitest/vitest.mjs")
    const child = spawn(process.execPath, [vitest, "run", "--config", config], {
      cwd: root,
      env: { ...process.env, MUTANTS_WORK: join(values.out, "work.json") },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data) => output = (output + data).slice(-9000))
    }
    const found = join(values.out, "found.jsonl")
    let [size, since] = [-1, Date.now()]
    const watch = setInterval(() => {
      const now = read(found).length
      if (now !== size) [size, since] = [now, Date.now()]
      else if (Date.now() - since > 180_000) process.kill(-child.pid, "SIGKILL")
    }, 2000)
    child.on("close", (_, signal) => {
      clearInterval(watch)
      resolve({ output, wasIdle: signal === "SIGKILL" })
    })
  })

const investigate = async (area) => {
  const { mutants: all, programs, tests: allTests } = area.make()
  const tests = allTests.filter((path) =>
    values.tests === undefined || values.tests.split(",").some((name) => path.includes(`/${name}.`))
  )
  const equivalents = JSON.parse(readFileSync(join(root, "scripts/mutants/equivalent.json"), "utf8"))
  const reasonOf = ({ file, what }) => equivalents[file]?.[what]
  const wanted = all.filter(({ file }) => values.file === undefined || file.endsWith(values.file))
  const mutants = sampled(wanted.filter((mutant) => reasonOf(mutant) === undefined))
  const path = join(values.out, `${area.name}.json`)
  const versions = Object.fromEntries(allTests.map((test) => [test, hash(readFileSync(join(root, test), "utf8"))]))
  const known = new Map(values.fresh ? [] : Object.entries(JSON.parse(read(path) || "{}")))
  const fileOf = (test) => test.slice(0, test.indexOf(": "))
  const results = new Map(mutants.map((mutant) => {
    const { killed, survived = [] } = known.get(keyOf(mutant)) ?? {}
    const valid = ([test, version]) => versions[fileOf(test)] === version
    return [mutant, { killed: killed && valid(killed) ? killed : undefined, survived: survived.filter(valid) }]
  }))
  const save = () => {
    for (const [mutant, result] of results) known.set(keyOf(mutant), result)
    writeFileSync(path, JSON.stringify(Object.fromEntries(known)))
  }
  const startedAt = Date.now()
  const found = join(values.out, "found.jsonl")
  writeFileSync(found, "")
  const open = mutants.map((mutant, id) => ({ place: String(id), ...mutant, id }))
  const lines = () =>
    open.flatMap(({ id }) => {
      const { killed, survived } = results.get(mutants[id])
      return [
        ...killed ? [{ id, test: killed[0], how: "killed" }] : [],
        ...survived.map(([test]) => ({ id, test, how: "survived" }))
      ]
    })
  const count = () => [...results.values()].filter(({ killed }) => killed).length
  say(`${area.name}: ${mutants.length} mutants, ${count()} known as killed`)
  const investigated = async (longest) => {
    const work = { mutants: open, programs, tests, found, workers: Number(values.workers), limit: 3000, longest }
    writeFileSync(join(values.out, "work.json"), JSON.stringify(work))
    let idle = 0
    for (;;) {
      writeFileSync(found, lines().map((line) => `${JSON.stringify(line)}\n`).join(""))
      const before = lines().length
      const { output, wasIdle } = await run(join(root, "scripts/mutants/vitest.config.mjs"))
      const begun = new Map()
      const now = read(found).split("\n").filter((line) => line !== "").slice(before).map((line) => JSON.parse(line))
      for (const { how, id, test } of now) {
        const result = results.get(mutants[id])
        const entry = [test, versions[fileOf(test)]]
        if (how === "begun") begun.set(`${id} ${test}`, [id, entry])
        else if (how !== "timeout") begun.delete(`${id} ${test}`)
        if (how === "killed") result.killed = entry
        else if (how === "survived") result.survived.push(entry)
        else if (how === "unrepeatable" || how === "disturbed") say(`  ${how}: ${test}`)
      }
      for (const [id, entry] of begun.values()) results.get(mutants[id]).killed = entry
      save()
      writeFileSync(join(values.out, `${area.name}.log`), output)
      if (begun.size === 0 && !wasIdle) return
      if (begun.size === 0 && ++idle === 3) throw new Error("the tests do not begin: is the machine too busy?")
      say(
        begun.size > 0
          ? `  goes on after a mutant that does not end: ${count()} killed`
          : "  nothing happened for three minutes: begins again"
      )
    }
  }
  for (const longest of new Set([Number(values.quick), Number(values.longest)])) await investigated(longest)
  const survivors = mutants.filter((mutant) => !results.get(mutant).killed)
  const equivalent = wanted.length - wanted.filter((mutant) => reasonOf(mutant) === undefined).length
  for (const { file, line, what } of survivors) say(`  ${file}:${line}  ${what}`)
  const seconds = Math.round((Date.now() - startedAt) / 1000)
  say(`${area.name}: ${count()} of ${mutants.length} killed, ${equivalent} equivalent, ${seconds} s`)
  return { area: area.name, mutants: mutants.length, killed: count(), equivalent, results, all: mutants }
}

const chosen = areas.filter(({ name }) => values.area === undefined || values.area.split(",").includes(name))
const reports = []
for (const area of chosen) reports.push(await investigate(area))
const report = join(values.out, "report.html")
writeFileSync(report, page(reports))
say(`the report: ${report}`)
if (values.json) {
  const counts = reports.map(({ area, equivalent, killed, mutants }) => ({ area, mutants, killed, equivalent }))
  console.log(JSON.stringify({ areas: counts }))
}
