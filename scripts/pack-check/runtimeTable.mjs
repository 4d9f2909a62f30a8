// Makes the table of supported runtimes in the documentation, by running all programs on all runtimes.
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../lib/workspace.mjs"
import { quiet, system } from "./consumer.mjs"
import { requirementsPage } from "./paths.mjs"
import { run } from "./processes.mjs"
import { holds } from "./programs.mjs"
import { problem } from "./report.mjs"

/** The columns of the table, each with its program. `only` restricts a program to one runtime. */
const columns = [
  { title: "memory store", program: "runtime/memory.mjs" },
  { title: "fake Redis", program: "runtime/fake.mjs" },
  { title: "fake on a socket", program: "runtime/socket.mjs" },
  { title: "fake without Effect", program: "runtime/plain.mjs" },
  { title: "ioredis", program: "runtime/ioredis.mjs" },
  { title: "`NodeRedis`", program: "runtime/nodeRedis.mjs", provider: "@effect/platform-node" },
  { title: "`BunRedis`", program: "runtime/bunRedis.mjs", provider: "@effect/platform-bun", only: "Bun" },
  { title: "`require`", program: "out/commonjs.cjs" }
]

/** Installs one of Effect's packages, if it has a release for the installed version of `effect`. */
const installProvider = async (folder, name, effect) => {
  const range = `~${effect}`
  const options = { cwd: folder, env: system, shell: process.platform === "win32" }
  const { failed } = await run("npm", ["install", ...quiet, `${name}@${range}`], options)
  return failed ? `no release for effect ${range}` : undefined
}

/** The Node version that an installed package's `engines` requires, if it is newer than this one. */
const asksForMore = (folder, name, version) => {
  const { engines } = JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"))
  const asked = /^>=(\d+)\.(\d+)\.(\d+)$/.exec(engines?.node ?? "")?.slice(1).map(Number)
  if (asked === undefined) return undefined
  const has = version.split(".").map(Number)
  const at = asked.findIndex((part, index) => part !== has[index])
  return at !== -1 && asked[at] > has[at] ? asked.join(".") : undefined
}

/** Runs all programs on all runtimes, and returns the rows of the table. */
export const runtimeRows = async (runtimes, folder, redisUrl) => {
  const { version: effect } = JSON.parse(readFileSync(join(folder, "node_modules/effect/package.json"), "utf8"))
  const missing = new Map()
  for (const { provider } of columns) {
    if (provider !== undefined) missing.set(provider, await installProvider(folder, provider, effect))
  }
  const rows = []
  for (const runtime of runtimes) {
    const cells = []
    for (const { only, program, provider, title } of columns) {
      if (only !== undefined && only !== runtime.name) cells.push("")
      else if (missing.get(provider) !== undefined) cells.push(missing.get(provider))
      else {
        const { passed, text } = await holds(runtime, folder, program, redisUrl)
        const more = provider !== undefined && runtime.name === "Node" && asksForMore(folder, provider, runtime.version)
        cells.push(passed ? more ? `yes, but it requires Node ${more}` : "yes" : "no")
        if (!passed) console.log(`    ${title} on ${runtime.name} ${runtime.version}: no\n${text}`)
      }
    }
    rows.push([`${runtime.name} ${runtime.version}`, ...cells])
  }
  return rows
}

const markdown = (rows) => {
  const table = [["runtime", ...columns.map(({ title }) => title)], ...rows]
  const widths = table[0].map((_, at) => Math.max(...table.map((row) => row[at].length)))
  const line = (cells) => `| ${cells.map((cell, at) => cell.padEnd(widths[at])).join(" | ")} |`
  return [line(table[0]), line(widths.map((width) => "-".repeat(width))), ...table.slice(1).map(line)].join("\n")
}

const page = join(root, requirementsPage)
const marked = /(<!-- runtimes -->\n+)([^]*?)(\n+<!-- \/runtimes -->)/

/** A table without minor versions and padding, for comparison. */
const outcomes = (table) =>
  table.replace(/(\b(?:Node|Bun|Deno) \d+)\.\d+\.\d+/g, "$1").replace(/ +/g, " ").replace(/-+/g, "-")

/** Prints the table. Then writes it into the page, or reports a problem if the page differs. */
export const reportTable = (rows, write) => {
  const table = markdown(rows)
  console.log(`\n${table}\n`)
  const text = existsSync(page) ? readFileSync(page, "utf8") : ""
  if (write) writeFileSync(page, text.replace(marked, (_, before, __, after) => `${before}${table}${after}`))
  else if (outcomes(marked.exec(text)?.[2] ?? "") !== outcomes(table)) {
    problem(
      `${requirementsPage} differs from the table above: run \`pnpm pack:check --long --write\``
    )
  }
}
