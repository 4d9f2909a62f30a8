// Runs the tests for real servers on servers other than the `redis-server` on the PATH: Valkey, Redict, and newer Redis
// releases, from Debian's packages.
//
//   pnpm servers                            all servers, all parts: several minutes for each server
//   pnpm servers --server trixie/valkey     these servers, by Debian release and server name
//   pnpm servers --part sentinel,cluster    these parts of the tests
//   pnpm servers --part short               the store contracts, Sentinel and Cluster; part of `npm test`
//   pnpm servers --optional                 skips a server that cannot be fetched, except in CI
//   pnpm servers --write                    also writes the table of all results into docs/how-it-is-tested.md
//   pnpm servers --part none --write        only writes it
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { commandLine } from "./lib/commandLine.mjs"
import { debianServer, debianServers } from "./lib/debianServers.mjs"
import { root } from "./lib/workspace.mjs"

const tests = "packages/redis/test/server"
/** The parts of the table, with their folders. */
const parts = {
  single: [`${tests}/single`],
  sentinel: [`${tests}/sentinel`],
  cluster: [`${tests}/cluster`],
  // Without busyOutage.test.ts, which takes minutes and depends on the process, not on the server
  processes: [...["jobs", "mutex", "nemesis", "streams"].map((name) => `${tests}/process/${name}`), `${tests}/interop`],
  cli: ["packages/cli/test/server"]
}
const short = ["single/mutexStore", "single/streamStore", "single/mistakes", "sentinel/mutex", "cluster/mutex"]
  .map((name) => `${tests}/${name}.test.ts`)

const { values } = commandLine({
  options: {
    server: { type: "string", default: debianServers.join() },
    part: { type: "string", default: Object.keys(parts).join() },
    optional: { type: "boolean", default: false },
    write: { type: "boolean", default: false }
  }
}, { names: { server: debianServers, part: [...Object.keys(parts), "short", "none"] } })
const wanted = values.part.split(",").filter((part) => part !== "none")

const cache = join(root, "node_modules/.cache/servers")
const reportPath = join(cache, "report.json")
const resultsPath = join(cache, "results.json")
mkdirSync(cache, { recursive: true })
rmSync(reportPath, { force: true })
const results = existsSync(resultsPath) ? JSON.parse(readFileSync(resultsPath, "utf8")) : {}

/** The path of the server's program; undefined if it cannot be fetched and may be skipped. */
const programOf = (server) => {
  try {
    return debianServer(server)
  } catch (error) {
    if (!values.optional || process.env.CI !== undefined) {
      console.error(`${server} cannot be fetched: ${error.message}`)
      process.exit(1)
    }
    console.log(`${server} is skipped: ${error.message}`)
    writeFileSync(
      reportPath,
      JSON.stringify({ numPassedTests: 0, numFailedTests: 0, numPendingTests: 1, numTodoTests: 0, testResults: [] })
    )
    return undefined
  }
}

/** The server's own name and version, such as "Valkey 8.1.1". */
const versionOf = (program) => {
  const { stdout } = spawnSync(program, ["--version"], { encoding: "utf8" })
  const [, name, version] = /^(\w+) server v=(\S+)/.exec(stdout)
  return `${name} ${version}`
}

/** Runs test files on a server. Returns the number of tests, and how many passed. */
const runTests = (program, paths) => {
  rmSync(reportPath, { force: true })
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportPath}`]
  const { status } = spawnSync("vitest", ["run", "--project", "server", ...reporters, ...paths], {
    cwd: root,
    env: { ...process.env, REDIS_SERVER: program },
    stdio: "inherit"
  })
  if (status !== 0) process.exitCode = 1
  const { numPassedTests, numTotalTests } = existsSync(reportPath) ? JSON.parse(readFileSync(reportPath, "utf8")) : {}
  return { passed: numPassedTests, all: numTotalTests, date: new Date().toISOString().slice(0, 10) }
}

for (const server of wanted.length === 0 ? [] : values.server.split(",")) {
  const program = programOf(server)
  if (program === undefined) continue
  const version = versionOf(program)
  for (const part of wanted) {
    console.log(`\n> ${version} from ${server}: ${part}`)
    const result = runTests(program, parts[part] ?? short)
    if (part === "short") continue
    // A new version starts without results
    if (results[server]?.version !== version) results[server] = { version, parts: {} }
    results[server].parts[part] = result
    writeFileSync(resultsPath, JSON.stringify(results, null, 1))
  }
}

const cell = (result) =>
  result?.all === undefined
    ? "not run"
    : result.passed === result.all
    ? result.all
    : `${result.passed} of ${result.all}`

if (values.write) {
  const path = join(root, "docs/how-it-is-tested.md")
  const [begin, end] = ["<!-- servers: pnpm servers --write -->", "<!-- end of servers -->"]
  const text = readFileSync(path, "utf8")
  const head = ["server", "Debian's release", ...Object.keys(parts), "date"]
  const rows = debianServers.filter((server) => server in results).map((server) => {
    const { parts: found, version } = results[server]
    const oldest = Object.values(found).map(({ date }) => date).sort()[0]
    return [version, server.split("/")[0], ...Object.keys(parts).map((part) => cell(found[part])), oldest]
  })
  const table = [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`)
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  writeFileSync(path, `${text.slice(0, from)}\n\n${table.join("\n")}\n\n${text.slice(to)}`)
}
