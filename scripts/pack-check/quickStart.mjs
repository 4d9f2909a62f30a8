// Does what the README says: its install line, with tarballs for our packages, and then its first program, on a server of
// the check's own.
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { delimiter, dirname, join } from "node:path"
import { fencedBlocks } from "../lib/doc-blocks.mjs"
import { root } from "../lib/workspace.mjs"
import { system } from "./consumer.mjs"
import { run } from "./processes.mjs"
import { problems } from "./report.mjs"

const parse = () => {
  const blocks = fencedBlocks(readFileSync(join(root, "README.md"), "utf8"))
  const line = blocks.flatMap(({ code }) => code.split("\n")).find((line) => line.startsWith("npm install "))
  const program = blocks.find(({ language }) => language === "ts").code
  return { names: line.split(/\s+/).slice(2), program }
}

/** npm, to be run by a Node of our choice: npm chooses versions by the Node that it runs on. */
const npm = async () => {
  const { text } = await run("which", ["npm"], { env: system })
  return realpathSync(text)
}

export const quickStart = async (runtime, packed, temporary, redisUrl) => {
  const { names, program } = parse()
  const tarballs = new Map(packed.map(({ name, tarball }) => [name, tarball]))
  const folder = join(temporary, `quick-start-${runtime.version}`)
  mkdirSync(folder)
  // What `npm init` writes: CommonJS
  writeFileSync(join(folder, "package.json"), `{ "name": "quick-start", "version": "1.0.0" }`)
  const env = { ...system, PATH: [dirname(runtime.command), system.PATH].join(delimiter) }
  const args = [await npm(), "install", "--no-audit", "--no-fund", ...names.map((name) => tarballs.get(name) ?? name)]
  const installed = await run(runtime.command, args, { cwd: folder, env })
  // Nor may npm warn that a package does not support this Node, or does not fit to another
  if (installed.failed || /EBADENGINE|ERESOLVE/.test(installed.text)) {
    problems.push(`npm install ${names.join(" ")} on Node ${runtime.version}:\n${installed.text}`)
  }
  const url = "redis://localhost:6379"
  if (!program.includes(url)) problems.push(`the first program of the README does not name ${url}`)
  writeFileSync(join(folder, "main.mjs"), stripTypeScriptTypes(program.replaceAll(url, redisUrl)))
  const ran = await run(runtime.command, ["main.mjs"], { cwd: folder, env })
  if (ran.failed || !/token \d+/.test(ran.text)) {
    problems.push(`the first program of the README on Node ${runtime.version}:\n${ran.text}`)
  }
}
