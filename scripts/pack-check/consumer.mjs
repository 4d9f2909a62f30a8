// Creates applications outside the repository that install the tarballs with npm.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { systemEnvironment } from "../lib/system.mjs"
import { root } from "../lib/workspace.mjs"
import { must } from "./report.mjs"

/** The environment of a terminal, in which `node` is the system's Node. */
export const system = systemEnvironment()

export const { devDependencies: pinned } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

export const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]

/** The tarballs as dependencies for package.json. */
export const fromTarballs = (packed) => Object.fromEntries(packed.map(({ name, tarball }) => [name, `file:${tarball}`]))

/** Creates a folder with these dependencies installed. `overrides` is npm's field of the same name. */
export const install = async (folder, dependencies, overrides = {}) => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "consumer", private: true, type: "module", dependencies, overrides })
  )
  await must(`npm install in ${folder}`, "npm", ["install", ...quiet], {
    cwd: folder,
    env: system,
    shell: process.platform === "win32"
  })
}

/** The path of the script behind an installed package's command. */
export const binOf = (folder, name, command = name) => {
  const path = join(folder, "node_modules", name)
  const { bin } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"))
  return join(path, typeof bin === "string" ? bin : bin[command])
}
