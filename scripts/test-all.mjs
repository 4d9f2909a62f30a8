// Everything that has to hold, one step after the other; `npm test` ends here. The last line is the count:
// each test of vitest is one, each other step is one.
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { constants } from "node:os"
import { join } from "node:path"
import { root } from "./lib/workspace.mjs"

const cache = join(root, "node_modules/.cache/test-all")
rmSync(cache, { recursive: true, force: true })
mkdirSync(cache, { recursive: true })

const total = { passed: 0, failed: 0, skipped: 0 }
const failures = []

const heading = (title) => console.log(`\n=== ${title} ${"=".repeat(Math.max(0, 72 - title.length))}`)
const windows = process.platform === "win32"
let child
let interruptedBy
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    interruptedBy ??= signal
    // Ctrl-C in a terminal reaches the whole group; a second one would mean "at once" to the child.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child?.kill(signal)
  })
}

const run = (command, args, options = {}) =>
  new Promise((resolve) => {
    let output = ""
    child = spawn(command, args, { cwd: root, stdio: "inherit", shell: windows, ...options })
    child.stdout?.on("data", (chunk) => (output += chunk))
    child.on("error", (error) => {
      console.error(`${command}: ${error.message}`)
      resolve({ passed: false, output })
    })
    child.on("close", (code) => resolve({ passed: code === 0, output }))
  })
const passes = async (command, ...args) => (await run(command, args)).passed

/** Runs one step; `work` returns true, false, or the counts of the step. */
const step = async (title, work) => {
  heading(title)
  const start = performance.now()
  const result = await work()
  if (interruptedBy !== undefined) process.exit(128 + constants.signals[interruptedBy])
  const counts = typeof result === "boolean" ? { passed: Number(result), failed: Number(!result), skipped: 0 } : result
  for (const key of Object.keys(total)) total[key] += counts[key]
  if (counts.failed > 0) failures.push(title)
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  console.log(`--- ${title}: ${counts.failed > 0 ? "FAILED" : "ok"} (${seconds} s)`)
  return counts.failed === 0
}

/**
 * An Effect that is neither yielded nor used does nothing, and only the patched compiler sees it. So the patch itself is
 * put to the test: a forgotten `yield*` has to be an error.
 */
const forgottenYieldIsAnError = async () => {
  const folder = join(cache, "forgotten-yield")
  mkdirSync(folder)
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      extends: join(root, "tsconfig.base.json"),
      files: ["forgotten.ts"],
      compilerOptions: { composite: false, declarationMap: false, incremental: false, noEmit: true, rootDir: "." }
    })
  )
  writeFileSync(
    join(folder, "forgotten.ts"),
    `import * as Effect from "effect/Effect"\nexport const f = Effect.gen(function*() {\n  Effect.log("x")\n})\n`
  )
  const { output } = await run("tsc", ["-p", folder], { stdio: ["ignore", "pipe", "inherit"] })
  if (output.includes("floatingEffect")) return true
  console.error(`A forgotten yield* went unnoticed: is the compiler patched (\`pnpm install\`)?\n${output}`)
  return false
}

const vitest = async (extra) => {
  const report = join(cache, "vitest.json")
  const { passed } = await run("vitest", [
    "run",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
    ...extra
  ])
  if (!existsSync(report)) return false
  const { numFailedTests, numPassedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
    readFileSync(report, "utf8")
  )
  const brokenFiles =
    testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0).length
  const failed = numFailedTests + brokenFiles
  // An error outside of any test (an unhandled rejection, a failing hook) fails the run without failing a test.
  const failedOtherwise = !passed && failed === 0 ? 1 : 0
  return { passed: numPassedTests, failed: failed + failedOtherwise, skipped: numPendingTests + numTodoTests }
}

await step("format", () => passes("dprint", "check"))
await step("lint", async () => {
  // All four, so that one run shows everything.
  const linted = await passes("oxlint", "--deny-warnings")
  const kept = await passes(process.execPath, "scripts/house-rules.mjs")
  const current = await passes(process.execPath, "scripts/barrels.mjs", "--check")
  const traced = await passes(process.execPath, "scripts/known-problems.mjs")
  return linted && kept && current && traced
})
const built = await step("build and type check", async () =>
  (await passes("effect-tsgo", "patch", "--skip-missing"))
  && (await passes("tsc", "-b", "tsconfig.json"))
  && (await forgottenYieldIsAnError()))
await step("snippets in docs", () => passes(process.execPath, "scripts/doc-snippets.mjs"))
await step("tests", () => vitest(process.argv.slice(2)))
if (built) {
  await step("packed packages", async () =>
    (await passes(process.execPath, "scripts/bundle.mjs"))
    && (await passes(process.execPath, "scripts/pack-check.mjs")))
} else {
  heading("packed packages")
  console.log("--- not run: there is nothing to pack, the build failed")
  total.skipped += 1
}

if (failures.length > 0) console.log(`\nfailed: ${failures.join(", ")}`)
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ""
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`)
process.exitCode = total.failed > 0 ? 1 : 0
