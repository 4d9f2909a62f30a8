// Runs the TypeScript blocks in the documentation, and compares their log lines and output with the results in their
// comments (`// => result`). An effect that a block names `program` runs on the in-memory Redis in virtual time. A block
// that starts a program itself runs in its own process. All other blocks are only imported, except those that need
// another server, which are skipped, and those that are tests, which run in the pack check.
//
//   node examples/documentation/main.mjs            all
//   node examples/documentation/main.mjs Mutex.ts   the blocks of files whose path contains this text
import { createFakeRedis } from "@effect-simba/fake-redis"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { pathToFileURL } from "node:url"
import { docBlocks, isTest } from "../../scripts/lib/doc-blocks.mjs"
import { root } from "../../scripts/lib/workspace.mjs"
import { isStarter, runAlone } from "./processes.mjs"
import { runProgram } from "./programs.mjs"

const only = process.argv[2] ?? ""
const wanted = docBlocks().filter((block) => !isTest(block) && block.path.includes(only))
if (wanted.length === 0) {
  console.error(`no file with blocks has "${only}" in its path`)
  process.exit(2)
}

// From here, packages resolve as they do in an application that uses effect-simba
const folder = join(root, "examples/node_modules/.cache/doc-programs")
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })

/** Blocks that need a server or a file that does not exist here. */
const unrunnable = ({ code }) =>
  /\bexample\.com\b|report\.js/.test(code) || (/^const program\b/m.test(code) && code.includes("SqlFence"))

const counts = { loaded: 0, "ran as programs": 0, "ran as processes": 0, "need another server": 0 }
const problems = []
const report = ({ line, path }, problem) => problems.push(`${path}:${line}: ${problem}`)

/** The library's log lines, which are not results. */
const ofLibrary = /^Leadership (?:begins|ends)$|^Redis(?: at .*)?: /

/** The results that a block shows, in order. */
const shownIn = (code) => [...code.matchAll(/\/\/ => (.*)$/gm)].map(([, text]) => text)

const compare = (block, output) => {
  const shown = shownIn(block.code)
  output = output.filter((line) => !ofLibrary.test(line))
  if (shown.length === 0 || JSON.stringify(shown) === JSON.stringify(output)) return
  report(block, `it shows ${JSON.stringify(shown)}, and its output is ${JSON.stringify(output)}`)
}

/** Exports to append to a block, so that its program and its service can be used from outside. */
const exportsOf = (code) => {
  const service = /^class (\w+) extends (Contender|StreamClient)\.Service</m.exec(code)
  const program = /^const program\b/m.test(code) ? "export { program as __program }" : ""
  return `\n${program}\n${service === null ? "" : `export { ${service[1]} as __${service[2]} }`}\n`
}

const server = await createFakeRedis()
const url = "redis://localhost:6379"

const write = (block, suffix = "") => {
  const path = join(folder, `${block.name}.mjs`)
  const code = block.code.replaceAll(url, server.url).replace(/port: \d+/g, "port: 0")
    // A result can also follow an expression: print its value
    .replace(/^(?!console\.|const |return )(\w.*\)) \/\/ => /gm, "console.log($1) // => ")
  writeFileSync(path, `${stripTypeScriptTypes(code, { mode: "strip" })}${suffix}`)
  return path
}

/** A program that provides its own connection cannot use virtual time, so it runs as a process. */
const asStarter = (block) => {
  if (isStarter(block) || !block.code.includes(url) || !/^const program = [^]*Effect\.provide\(/m.test(block.code)) {
    return block
  }
  const start = block.code.includes("Effect.never") ? "Effect.runFork" : "await Effect.runPromise"
  return { ...block, code: `${block.code}\n${start}(Effect.scoped(program))\n` }
}

const blocks = wanted.map(asStarter)

const load = async (block) => {
  const lines = []
  const { log } = console
  console.log = (...values) => lines.push(values.map(String).join(" "))
  try {
    const module = await import(pathToFileURL(write(block, exportsOf(block.code))).href)
    counts.loaded += 1
    if (typeof module.__program === "function") return lines
    if (module.__program === undefined && !/^(?:export )?const program\b/m.test(block.code)) return lines
    counts["ran as programs"] += 1
    const late = setTimeout(60_000).then(() => Promise.reject(new Error("still running after a minute")))
    await Promise.race([runProgram(module.__program ?? module.program, module, (line) => lines.push(line)), late])
    return lines
  } finally {
    console.log = log
  }
}

for (const block of blocks.filter((block) => !isStarter(block) && !unrunnable(block))) {
  try {
    compare(block, await load(block))
  } catch (error) {
    report(block, error instanceof Error ? error.stack.split("\n").slice(0, 4).join("\n") : String(error))
  }
}

const starters = blocks.filter((block) => isStarter(block) && !unrunnable(block))
counts["ran as processes"] = starters.length
counts["need another server"] = blocks.filter(unrunnable).length
await runAlone(starters, { ...process.env, REDIS_URL: server.url, NO_COLOR: "1" }, write, compare, report)
await server.close()

for (const problem of problems) console.error(problem)
const parts = Object.entries(counts).map(([how, count]) => `${count} ${how}`)
console.log(`${blocks.length} blocks in the documentation: ${parts.join(", ")}; ${problems.length} problem(s)`)
process.exit(problems.length > 0 ? 1 : 0)
