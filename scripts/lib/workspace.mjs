// Where things are, for the scripts of this folder.
import { readdirSync, statSync } from "node:fs"
import { basename, dirname, join, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** The published packages, a package after those it depends on. */
export const packageFolders = ["core", "testkit", "redis"].map((name) => join(root, "packages", name))

/** A path as people write it: relative to the root, with slashes. */
export const shown = (path) => relative(root, path).split(sep).join("/")

/** All files below a folder for which `keep(name)` holds, sorted; none when there is no such folder. */
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

/** The public modules of a package: the names of `src/*.ts` without the barrel. */
export const publicModules = (packageFolder) =>
  readdirSync(join(packageFolder, "src"), { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && entry.name !== "index.ts")
    .map((entry) => basename(entry.name, ".ts"))
    .sort()
