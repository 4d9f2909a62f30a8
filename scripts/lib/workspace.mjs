// The layout of the repository, for the scripts of this folder.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { basename, dirname, join, posix, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** The published packages, each after those it depends on. */
export const packageFolders = ["core", "fake-redis", "testkit", "redis", "cli"].map((name) =>
  join(root, "packages", name)
)

/** A path as people write it: relative to the root, with slashes. */
export const shown = (path) => relative(root, path).split(sep).join("/")

/** All files below a folder for which `keep(name)` holds, sorted; empty if there is no such folder. */
export const filesBelow = (folder, keep) => {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return []
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => a.name < b.name ? -1 : 1)
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return entry.name === "node_modules" ? [] : filesBelow(path, keep)
      return keep(entry.name) ? [path] : []
    })
}

/** Folders of a package that have an index: its root, and `streams`. A package without public modules has none. */
export const barrelFolders = (packageFolder) =>
  ["src", "src/streams"].map((name) => join(packageFolder, name)).filter((folder) =>
    existsSync(folder) && modulesIn(folder).length > 0
  )

/**
 * Modules that a barrel leaves out: those that need Node or load `effect/sql`, those for tests or for programs without
 * Effect, and the ports of stores.
 */
export const outsideBarrels = new Set([
  "Engine",
  "createFakeRedis",
  "FakeRedisServer",
  "JobStore",
  "MutexConfig",
  "MutexStore",
  "MutexStoreSuite",
  "RedisInternals",
  "RedisSimulation",
  "RedisTopology",
  "SqlFence",
  "SimbaContender",
  "GoConsumer",
  "StreamStore",
  "StreamStoreSuite",
  "Subscriber",
  "promise"
])

/** Modules for authors of stores: they may change in any release, and do not count as names that users meet. */
export const ports = new Set(["JobStore", "MutexConfig", "MutexStore", "RedisTopology", "StreamStore", "Subscriber"])

/**
 * Modules for the other packages of this repository: they re-export internals, and have no documentation of their own.
 */
export const unstable = new Set(["Engine", "RedisInternals"])

/** The public modules of a folder: the names of its `*.ts` without the barrel. */
export const modulesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && entry.name !== "index.ts")
    .map((entry) => basename(entry.name, ".ts"))
    .sort()

/** The public modules of a package, as in its subpath exports: `Mutex`, `streams/StreamClient`. */
export const publicModules = (packageFolder) =>
  barrelFolders(packageFolder).flatMap((folder) =>
    modulesIn(folder).map((name) => relative(join(packageFolder, "src"), join(folder, name)).split(sep).join("/"))
  )

/** The files that a file reaches by relative paths, including itself. */
export const filesFrom = (file, found = new Set()) => {
  if (found.has(file)) return found
  found.add(file)
  const text = readFileSync(join(root, file), "utf8")
  for (const [, path] of text.matchAll(/(?:from |new URL\()"(\.[^"]+)"/g)) {
    filesFrom(posix.join(posix.dirname(file), path), found)
  }
  return found
}
