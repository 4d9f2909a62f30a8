// Builds an environment in which npm, pnpm and Node run as if from a terminal, even if npm or pnpm started this
// process.
import { existsSync, readdirSync } from "node:fs"
import { delimiter, join } from "node:path"

// Variables that npm and pnpm set for the scripts that they run. Nested npm and pnpm processes would mistake these for
// the user's settings. The real settings (registry, proxy, certificates, cache) are kept.
const ofTheRun = new RegExp(
  [
    "^npm_(?!config_)",
    "^npm_config_(?:prefix|local_prefix|global_prefix|globalconfig|init_module|node_gyp|npm_version|user_agent)$",
    "^pnpm_(?:package_name|script_src_dir|config_verify_deps_before_run)$",
    "^(?:init_cwd|node|node_env|vitest|path)$"
  ].join("|"),
  "i"
)

/** The environment without npm's and pnpm's additions. In it, `node` is the system's Node, not the pinned one. */
export const systemEnvironment = (...firstOnPath) => {
  const kept = Object.entries(process.env).filter(([name]) => !ofTheRun.test(name))
  const path = (process.env.PATH ?? process.env.Path ?? "")
    .split(delimiter)
    .filter((folder) => folder !== "" && !/[\\/]node_modules[\\/]/.test(`${folder}/`))
  return { ...Object.fromEntries(kept), PATH: [...firstOnPath, ...path].join(delimiter) }
}

/**
 * The path of one of Postgres's server programs. Debian installs them outside of the PATH, in one folder per version.
 */
export const postgresProgram = (name) => {
  const debian = "/usr/lib/postgresql"
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => b - a) : []
  return versions.map((version) => join(debian, version, "bin", name)).find((path) => existsSync(path)) ?? name
}
