// Runs npm, pnpm and Node as if from a terminal, although npm or pnpm started this process.
import { existsSync, readdirSync } from "node:fs"
import { delimiter, join } from "node:path"

// Variables that npm and pnpm set for a script: nested npm and pnpm processes would take them for their own settings.
// Users' settings (a registry, a proxy, a certificate, a cache) are not among them, and stay.
const ofTheRun = new RegExp(
  [
    "^npm_(?!config_)",
    "^npm_config_(?:prefix|local_prefix|global_prefix|globalconfig|init_module|node_gyp|npm_version|user_agent)$",
    "^pnpm_(?:package_name|script_src_dir|config_verify_deps_before_run)$",
    "^(?:init_cwd|node|node_env|vitest|path)$"
  ].join("|"),
  "i"
)

/** The environment outside of npm and pnpm, where `node` is the system's Node instead of the pinned one. */
export const systemEnvironment = (...firstOnPath) => {
  const kept = Object.entries(process.env).filter(([name]) => !ofTheRun.test(name))
  const path = (process.env.PATH ?? process.env.Path ?? "")
    .split(delimiter)
    .filter((folder) => folder !== "" && !/[\\/]node_modules[\\/]/.test(`${folder}/`))
  return { ...Object.fromEntries(kept), PATH: [...firstOnPath, ...path].join(delimiter) }
}

/** A program of a Postgres server. Debian keeps them outside of the PATH, in a folder for each version. */
export const postgresProgram = (name) => {
  const debian = "/usr/lib/postgresql"
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => b - a) : []
  return versions.map((version) => join(debian, version, "bin", name)).find((path) => existsSync(path)) ?? name
}
