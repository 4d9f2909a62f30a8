// Runs all checks, for `npm test`. The tests on Redis servers mostly wait, so the other steps run concurrently. The
// last line is the total; each test and each other step counts as one.
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { constants } from "node:os"
import { join } from "node:path"
import { root } from "./lib/workspace.mjs"

const reports = join(root, "node_modules/.cache/test-all")
rmSync(reports, { recursive: true, force: true })
mkdirSync(reports, { recursive: true })

const total = { passed: 0, failed: 0, skipped: 0 }
const failedSteps = []

const windows = process.platform === "win32"
const children = new Set()
let interruptedBy
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    interruptedBy ??= signal
    // In a terminal, Ctrl-C already reaches the whole process group. A second signal would abort the children
    // immediately.
    if (signal !== "SIGINT" || !process.stdin.isTTY) { for (const child of children) child.kill(signal) }
  })
}

const run = ([command, ...args]) =>
  new Promise((resolve) => {
    let output = ""
    const child = spawn(command, args, { cwd: root, shell: windows, stdio: ["ignore", "pipe", "pipe"] })
    children.add(child)
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk))
    child.on("error", (error) => (output += error.message))
    child.on("close", (code) => {
      children.delete(child)
      if (interruptedBy === undefined) resolve({ passed: code === 0, output })
      else if (children.size === 0) process.exit(128 + constants.signals[interruptedBy])
    })
  })

/**
 * Counts the results of a vitest project. An error outside the tests fails the run but no test, so it counts as one
 * failure.
 */
const countsOf = (report, passed) => {
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0 }
  const { numFailedTests, numPassedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
    readFileSync(report, "utf8")
  )
  const brokenFiles = testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0)
  const failed = numFailedTests + brokenFiles.length
  return {
    passed: numPassedTests,
    failed: failed === 0 && !passed ? 1 : failed,
    skipped: numPendingTests + numTodoTests
  }
}

/** Runs a command, and prints its output if it fails. */
const step = async (title, command, report) => {
  const start = performance.now()
  const { output, passed } = await run(command)
  const counts = report === undefined
    ? { passed: Number(passed), failed: Number(!passed), skipped: 0 }
    : countsOf(report, passed)
  for (const key of Object.keys(total)) total[key] += counts[key]
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  const tests = report === undefined ? "" : `${counts.passed} tests, `
  if (report !== undefined && counts.passed + counts.failed === 0) {
    return console.log(`--- ${title}: SKIPPED\n${output}`)
  }
  if (counts.failed === 0) return console.log(`--- ${title}: ok (${tests}${seconds} s)`)
  failedSteps.push(title)
  console.log(`\n=== ${title}\n${output}\n--- ${title}: FAILED (${tests}${seconds} s)\n`)
}

const script = (name) => step(name, ["pnpm", "run", name])

const project = (name) => {
  const report = join(reports, `${name}.json`)
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`]
  return step(`tests: ${name}`, ["vitest", "run", "--project", name, ...reporters], report)
}

/** The tests on Redis also run on another server. */
const valkey = () =>
  step(
    "tests: Valkey",
    ["node", "scripts/servers.mjs", "--server", "trixie/valkey", "--part", "short", "--optional"],
    join(root, "node_modules/.cache/servers/report.json")
  )

await Promise.all([
  project("server").then(valkey),
  (async () => {
    for (const name of ["format:check", "lint", "check", "docs:check", "docs:run"]) await script(name)
    await project("memory")
    await script("pack:check")
    await script("playground:short")
    await script("site:check")
  })()
])

if (failedSteps.length > 0) console.log(`\nfailed: ${failedSteps.join(", ")}`)
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ""
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`)
process.exitCode = total.failed > 0 ? 1 : 0
