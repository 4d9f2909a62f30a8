// Installs the runtimes that the packed packages are tested on from npm, into a cache folder. Each runtime publishes
// its binary for this platform as an npm package.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../lib/workspace.mjs"
import { install } from "./consumer.mjs"
import { run } from "./processes.mjs"

const folder = join(root, "node_modules/.cache/pack-check/runtimes")

const { arch, platform } = process
const binaries = {
  node: `node-${platform}-${arch}`,
  bun: `@oven/bun-${platform}-${arch === "arm64" ? "aarch64" : arch}`,
  deno: `@deno/${platform}-${arch}${platform === "linux" ? "-glibc" : ""}`
}

/** The oldest Node that the packages' `engines` accept, such as `20.0.0`. */
const oldestNode = () => {
  const { engines } = JSON.parse(readFileSync(join(root, "packages/core/package.json"), "utf8"))
  const [major, minor = 0, patch = 0] = engines.node.replace(/^>=/, "").split(".")
  return `${major}.${minor}.${patch}`
}

/** Installs the runtimes. Returns the name and version of each, and the command that starts a program on it. */
export const installRuntimes = async () => {
  const nodes = [oldestNode(), "20", "22", "24"]
  const wanted = [
    ...nodes.map((version) => ({
      name: "Node",
      alias: `node-${version}`,
      from: `npm:${binaries.node}@${version}`,
      binary: "bin/node",
      args: []
    })),
    { name: "Bun", alias: "bun", from: `npm:${binaries.bun}@1`, binary: "bin/bun", args: [] },
    { name: "Deno", alias: "deno", from: `npm:${binaries.deno}@2`, binary: "deno", args: ["run", "--allow-all"] }
  ]
  await install(folder, Object.fromEntries(wanted.map(({ alias, from }) => [alias, from])))
  return Promise.all(wanted.map(async ({ alias, args, binary, name }) => {
    const command = join(folder, "node_modules", alias, binary)
    const { text } = await run(command, ["--version"])
    return { name, version: /\d+\.\d+\.\d+/.exec(text)?.[0] ?? text, command, args }
  }))
}
