// Breaks each protocol rule in a copy of the packages, and records which layers of tests detect it: the
// explorer, 300 simulator seeds, and the module's tests.
//
//   pnpm rules                        all rules that have no result yet
//   pnpm rules --rule "margin"        rules whose name contains this text
//   pnpm rules --deviations 1         fewer deviations in the explorer (default: 2)
//   pnpm rules --seeds 100            fewer seeds (default: 300)
//   pnpm rules --minutes 4            does not start another run after this time
//   pnpm rules --only explorer        one of tests, explorer and seeds
//   pnpm rules --repeat               also rules that have a result
//   pnpm rules --check                only checks that each rule's text is in the code; part of pnpm lint
//   pnpm rules --write                writes the table into docs/how-it-is-tested.md
import { spawn } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { commandLine } from "./lib/commandLine.mjs"
import { root } from "./lib/workspace.mjs"
import { hash } from "./mutants/luaMutants.mjs"
import { rules } from "./rules/rules.mjs"
import { writeRules } from "./rules/table.mjs"

const { values } = commandLine({
  options: {
    rule: { type: "string", default: "" },
    deviations: { type: "string", default: "2" },
    seeds: { type: "string", default: "300" },
    minutes: { type: "string", default: "600" },
    write: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    repeat: { type: "boolean", default: false },
    only: { type: "string", default: "tests,explorer,seeds" },
    out: { type: "string", default: join(root, "node_modules/.cache/rules") }
  }
}, {
  counts: ["seeds"],
  whole: ["deviations"],
  positive: ["minutes"],
  names: { only: ["tests", "explorer", "seeds"] }
})

const endsAt = Date.now() + Number(values.minutes) * 60_000
// Outside of node_modules: Node does not strip types below it
const copy = join(tmpdir(), `effect-simba-rules-${process.pid}`)
const resultsPath = join(values.out, "results.json")

const copyPackages = () => {
  rmSync(copy, { recursive: true, force: true })
  mkdirSync(copy, { recursive: true })
  const filter = (path) => !/\/(dist|coverage)(\/|$)/.test(path.slice(root.length)) || path.includes("node_modules")
  cpSync(join(root, "packages"), join(copy, "packages"), { recursive: true, verbatimSymlinks: true, filter })
  // The docs are needed by tests that compare their diagrams with the code
  for (const name of ["scripts", "docs"]) cpSync(join(root, name), join(copy, name), { recursive: true })
  for (const name of ["package.json", "vitest.config.ts", "tsconfig.base.json"]) {
    cpSync(join(root, name), join(copy, name))
  }
  // The repository's tsconfig.json refers to folders that are not copied
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

/** Replaces `from` with `to`. `from` must occur exactly once in the file. */
const replaced = (text, from, to, file) => {
  if (text.split(from).length !== 2) throw new Error(`"${from}" must occur exactly once in ${file}`)
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

/** Whether the tests pass in the copy while no rule is broken. If they do not, a later failure proves nothing. */
const passes = async (rule) => {
  const key = rule.tests.join()
  if (!passing.has(key)) passing.set(key, !(await layers.tests(rule)).found)
  return passing.get(key)
}

/** Runs one of the programs in scripts/rules on the copy, and parses its last line as JSON. */
const reportOf = async (program, ...args) => {
  const { code, isOver, output } = await run([join(root, "scripts/rules", program), copy, ...args])
  if (isOver) return { found: undefined, by: "ended after ten minutes" }
  return code === 0 ? JSON.parse(output.trim().split("\n").at(-1)) : { found: true, by: "crashes" }
}

const layers = {
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
  explorer: async ({ reason, scopes }) => {
    if (reason !== undefined) return { found: undefined, by: reason }
    const found = await reportOf("explore.mjs", values.deviations, scopes.join())
    if (found.by !== undefined) return found
    return found.schedule === undefined
      ? { found: false, schedules: found.schedules }
      : {
        found: true,
        by: `\`${found.scope}\`, ${found.schedule === "" ? "without a deviation" : `"${found.schedule}"`}`
      }
  },
  seeds: async ({ plan }) => {
    const found = await reportOf("seeds.mjs", plan, values.seeds)
    if (found.by !== undefined) return found
    return found.seed === undefined ? { found: false, seeds: found.seeds } : { found: true, by: `seed ${found.seed}` }
  }
}

/** The saved results. Read from the file each time, because concurrent runs may have added some. */
const saved = () => existsSync(resultsPath) ? JSON.parse(readFileSync(resultsPath, "utf8")) : {}

const save = (key, by, result) => {
  const all = saved()
  all[key] = { ...all[key], [by]: result }
  writeFileSync(resultsPath, JSON.stringify(all, null, 1))
}

/**
 * A result is reused until the rule is broken in a different way. After other changes, use `--repeat` to measure again.
 */
const keyOf = ({ file, from, rule, to }) => hash(JSON.stringify([rule, file, from, to]))

const missingOf = (rule) => {
  const known = saved()[keyOf(rule)] ?? {}
  const isKnown = (by) => known[by] !== undefined && (by !== "explorer" || known[by].scopes === String(rule.scopes))
  return values.only.split(",").filter((by) => values.repeat || !isKnown(by))
}

const ask = async (rule, by) => {
  const result = await layers[by](rule)
  save(keyOf(rule), by, by === "explorer" ? { ...result, scopes: String(rule.scopes) } : result)
  console.log(`${rule.rule}: ${by}: ${result.found ? result.by : result.found ?? result.by}`)
}

if (values.check) {
  rules.forEach(broken)
  process.exit()
}
if (!rules.some(({ rule }) => rule.includes(values.rule))) {
  console.error(`no rule has "${values.rule}" in its name`)
  process.exit(2)
}
mkdirSync(values.out, { recursive: true })
let isCopied = false
for (const rule of rules) {
  const missing = rule.rule.includes(values.rule) ? missingOf(rule) : []
  if (missing.length === 0 || Date.now() > endsAt) continue
  if (!isCopied) copyPackages()
  isCopied = true
  const target = join(copy, rule.file)
  const original = readFileSync(target, "utf8")
  const writeLua = () => rule.file.endsWith(".lua") ? run(["scripts/lua.mjs"]) : undefined
  const isSound = !missing.includes("tests") || await passes(rule)
  writeFileSync(target, broken(rule))
  await writeLua()
  for (const by of missing) {
    if (by === "tests" && !isSound) console.log(`${rule.rule}: its tests fail while no rule is broken`)
    else if (Date.now() < endsAt) await ask(rule, by)
  }
  writeFileSync(target, original)
  await writeLua()
}
rmSync(copy, { recursive: true, force: true })
if (values.write) {
  const known = saved()
  writeRules(rules.map((rule) => ({ ...rule, results: known[keyOf(rule)] ?? {} })))
}
