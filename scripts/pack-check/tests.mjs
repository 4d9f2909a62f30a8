// Runs tests on the packed packages with vitest: the tests in the documentation, and the contract suites of both stores
// on the fake Redis and on a real server.
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { docBlocks, isTest } from "../lib/doc-blocks.mjs"
import { root } from "../lib/workspace.mjs"
import { binOf, system } from "./consumer.mjs"
import { run } from "./processes.mjs"
import { problem } from "./report.mjs"

// Without isolation, tests share the loaded modules: loading them costs more than running the tests
const vitest = { include: ["test/**/*.test.ts"], testTimeout: 20_000, maxWorkers: 2, isolate: false }

/** Writes the tests into the consumer's folder. Returns the number of tests from the documentation. */
export const writeTests = (folder) => {
  const tests = docBlocks().filter(isTest)
  if (tests.length === 0) problem("no test was found in the documentation")
  mkdirSync(join(folder, "test/docs"), { recursive: true })
  for (const { code, name } of tests) writeFileSync(join(folder, "test/docs", `${name}.test.ts`), code)
  cpSync(join(root, "scripts/pack-check/consumer/test"), join(folder, "test"), { recursive: true })
  writeFileSync(join(folder, "vitest.config.mjs"), `export default ${JSON.stringify({ test: vitest })}\n`)
  return tests.length
}

/** Runs the tests on this Node. Tests on a real server use `redisUrl`. */
export const runTests = async (folder, redisUrl) => {
  const output = join(folder, "vitest.json")
  const args = [binOf(folder, "vitest"), "run", "--reporter=dot", "--reporter=json", `--outputFile.json=${output}`]
  const { failed, text } = await run(process.execPath, args, {
    cwd: folder,
    env: { ...system, REDIS_URL: redisUrl, NO_COLOR: "1" }
  })
  if (failed || !existsSync(output)) problem(`tests on the packed packages:\n${text}`)
  if (!existsSync(output)) return "no report"
  const report = JSON.parse(readFileSync(output, "utf8"))
  // A suite that registers no tests must not count as successful
  for (const { assertionResults, name } of report.testResults) {
    if (assertionResults.length === 0) problem(`${name} has no tests`)
  }
  if (report.numPendingTests + report.numTodoTests > 0) {
    problem(`tests on the packed packages were skipped:\n${text}`)
  }
  return `${report.numPassedTests} passed`
}
