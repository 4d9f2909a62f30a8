// The repository's layout: packages, their modules, and helpers for paths.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { basename, dirname, join, posix, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** The published packages, each after its dependencies. */
export const packageFolders = ["core", "fake-redis", "testkit", "redis", "cli"].map((name) =>
  join(root, "packages", name)
)

/** A path for display: relative to the root, with slashes. */
export const shown = (path) => relative(root, path).split(sep).join("/")

/** All files under a folder for which `keep(name)` holds, sorted. Empty if the folder does not exist. */
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

/** The folders of a package that have an index: `src` and `src/streams`. Folders without public modules have none. */
export const barrelFolders = (packageFolder) =>
  ["src", "src/streams"].map((name) => join(packageFolder, name)).filter((folder) =>
    existsSync(folder) && modulesIn(folder).length > 0
  )

/**
 * Modules that the barrels leave out because they need Node, load `effect/sql`, are for tests or for programs without
 * Effect, or are ports for stores.
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

/** Modules for store authors. They may change in any release, so their names do not count as public. */
export const ports = new Set(["JobStore", "MutexConfig", "MutexStore", "RedisTopology", "StreamStore", "Subscriber"])

/** Modules for other packages in this repository. They re-export internals and are not documented. */
export const unstable = new Set(["Engine", "RedisInternals"])

/** The public modules of a folder: the names of its `*.ts` files except the barrel. */
export const modulesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && entry.name !== "index.ts")
    .map((entry) => basename(entry.name, ".ts"))
    .sort()

/** The public modules of a package, named like its subpath exports: `Mutex`, `streams/StreamClient`. */
export const publicModules = (packageFolder) =>
  barrelFolders(packageFolder).flatMap((folder) =>
    modulesIn(folder).map((name) => relative(join(packageFolder, "src"), join(folder, name)).split(sep).join("/"))
  )

/** The files that a file imports by relative paths, directly or indirectly, including itself. */
export const filesFrom = (file, found = new Set()) => {
  if (found.has(file)) return found
  found.add(file)
  const text = readFileSync(join(root, file), "utf8")
  for (const [, path] of text.matchAll(/(?:from |new URL\()"(\.[^"]+)"/g)) {
    filesFrom(posix.join(posix.dirname(file), path), found)
  }
  return found
}
