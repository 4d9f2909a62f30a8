// Breaks each rule of the protocol in a copy of the packages, and asks what notices: the explorer, 300 seeds, or the tests
// of the module.
//
//   pnpm rules                        all, what was not run yet
//   pnpm rules --rule "margin"        those whose name contains it
//   pnpm rules --deviations 1         the explorer with fewer deviations (default: 2)
//   pnpm rules --seeds 100            fewer seeds (default: 300)
//   pnpm rules --minutes 4            begins nothing new after so long
//   pnpm rules --write                writes the table into docs/how-it-is-tested.md
import { spawn } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { root } from "./lib/workspace.mjs"
import { hash } from "./mutants/luaMutants.mjs"
import { rules } from "./rules/rules.mjs"
import { writeRules } from "./rules/table.mjs"

const { values } = parseArgs({
  options: {
    rule: { type: "string", default: "" },
    deviations: { type: "string", default: "2" },
    seeds: { type: "string", default: "300" },
    minutes: { type: "string", default: "600" },
    write: { type: "boolean", default: false },
    fresh: { type: "boolean", default: false },
    only: { type: "string", default: "tests,explorer,seeds" },
    out: { type: "string", default: join(root, "node_modules/.cache/rules") }
  }
})

const endsAt = Date.now() + Number(values.minutes) * 60_000
// Not below node_modules, where Node strips no types
const copy = join(tmpdir(), "effect-simba-rules")
const resultsPath = join(values.out, "results.json")

const copyPackages = () => {
  rmSync(copy, { recursive: true, force: true })
  mkdirSync(copy, { recursive: true })
  const filter = (path) => !/\/(dist|coverage)(\/|$)/.test(path.slice(root.length)) || path.includes("node_modules")
  cpSync(join(root, "packages"), join(copy, "packages"), { recursive: true, verbatimSymlinks: true, filter })
  cpSync(join(root, "scripts"), join(copy, "scripts"), { recursive: true, verbatimSymlinks: true })
  for (const name of ["package.json", "vitest.config.ts", "tsconfig.base.json"]) {
    cpSync(join(root, name), join(copy, name))
  }
  // That of the repository refers to folders that are not copied
  writeFileSync(join(copy, "tsconfig.json"), JSON.stringify({ extends: "./tsconfig.base.json" }))
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
}

const run = (args) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: copy,
      env: { ...process.env, NO_COLOR: "1" },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let [output, isOver] = ["", false]
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => output += data)
    const timer = setTimeout(() => {
      isOver = true
      child.kill("SIGKILL")
    }, 600_000)
    child.on("close", (code) => {
      clearTimeout(timer)
      resolve({ code, isOver, output })
    })
  })

/** Puts `to` in the place of `from`, which must stand in the file once. */
const replaced = (text, from, to, file) => {
  if (text.split(from).length !== 2) throw new Error(`"${from}" does not stand in ${file} once`)
  return text.replace(from, () => to)
}

const broken = ({ file, from, to }) => {
  const text = readFileSync(join(root, file), "utf8")
  if (typeof to === "string") return replaced(text, from, to, file)
  const included = join(root, file, "..", to.inline)
  const body = replaced(readFileSync(included, "utf8"), to.from, to.to, included).replaceAll(
    "@include ",
    "@include include/"
  )
  return replaced(text, from, body.split("\n").filter((line) => !/^---(?! @)/.test(line)).join("\n"), file)
}

const passing = new Map()

/** Whether the tests pass in the copy while no rule is broken: otherwise their failure proves nothing. */
const passes = async (rule) => {
  const key = rule.tests.join()
  if (!passing.has(key)) passing.set(key, !(await ask.tests(rule)).found)
  return passing.get(key)
}

const ask = {
  tests: async ({ tests }) => {
    const { code, isOver, output } = await run([
      join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      "--project",
      "memory",
      "--tags-filter=!long",
      "--bail",
      "1",
      ...tests
    ])
    if (isOver) return { found: true, by: "does not end" }
    if (code === 0) return { found: false }
    const name = /FAIL .*?([\w-]+\.test\.ts)/.exec(output)?.[1]
    return { found: true, by: name ?? "fails" }
  },
  explorer: async ({ scopes }) => {
    const args = [join(root, "scripts/rules/explore.mjs"), copy, values.deviations, scopes.join()]
    const { code, isOver, output } = await run(args)
    if (isOver) return { found: undefined, by: "ended after ten minutes" }
    if (code !== 0) return { found: true, by: "crashes" }
    const { schedule, schedules, scope } = JSON.parse(output.trim().split("\n").at(-1))
    return schedule === undefined
      ? { found: false, schedules, deviations: Number(values.deviations) }
      : { found: true, by: `\`${scope}\`, "${schedule}"` }
  },
  seeds: async ({ plan }) => {
    const { code, isOver, output } = await run([
      "packages/redis/test/simulate/main.ts",
      "--plan",
      plan,
      "--seeds",
      values.seeds,
      "--workers",
      "1",
      "--out",
      join(values.out, "seeds")
    ])
    if (isOver) return { found: undefined, by: "ended after ten minutes" }
    if (code === 0) return { found: false, seeds: Number(values.seeds) }
    return { found: true, by: `seed ${/seed (\d+)/.exec(output)?.[1] ?? "?"}` }
  }
}

mkdirSync(values.out, { recursive: true })
let isCopied = false
const saved = !values.fresh && existsSync(resultsPath) ? JSON.parse(readFileSync(resultsPath, "utf8")) : {}
const keyOf = (rule) => hash(JSON.stringify([rule.rule, broken(rule)]))
for (const rule of rules) {
  if (!rule.rule.includes(values.rule)) continue
  const results = saved[keyOf(rule)] ??= {}
  const missing = values.only.split(",").filter((by) => results[by] === undefined)
  if (missing.length === 0) continue
  if (!isCopied) copyPackages()
  isCopied = true
  const target = join(copy, rule.file)
  const original = readFileSync(target, "utf8")
  const writeLua = () => rule.file.endsWith(".lua") ? run(["scripts/lua.mjs"]) : undefined
  const isSound = !missing.includes("tests") || await passes(rule)
  writeFileSync(target, broken(rule))
  await writeLua()
  for (const by of missing) {
    if (Date.now() > endsAt) break
    if (by === "tests" && !isSound) {
      console.log(`${rule.rule}: its tests fail while no rule is broken`)
      continue
    }
    results[by] = await ask[by](rule)
    writeFileSync(resultsPath, JSON.stringify(saved, null, 1))
    console.log(`${rule.rule}: ${by}: ${results[by].found ? results[by].by : results[by].found ?? results[by].by}`)
  }
  writeFileSync(target, original)
  await writeLua()
}
if (values.write) writeRules(rules.map((rule) => ({ ...rule, results: saved[keyOf(rule)] ?? {} })))
