// Applications outside of the repository that have installed the tarballs with npm.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { systemEnvironment } from "../lib/system.mjs"
import { root } from "../lib/workspace.mjs"
import { must } from "./report.mjs"

/** The environment of a terminal: `node` is the system's Node. */
export const system = systemEnvironment()

export const { devDependencies: pinned } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

export const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]

/** The version of each tarball, as package.json names it. */
export const fromTarballs = (packed) => Object.fromEntries(packed.map(({ name, tarball }) => [name, `file:${tarball}`]))

/** Makes a folder with these dependencies installed. `overrides` is that field of package.json. */
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

/** The script behind a command of an installed package. */
export const binOf = (folder, name, command = name) => {
  const path = join(folder, "node_modules", name)
  const { bin } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"))
  return join(path, typeof bin === "string" ? bin : bin[command])
}
