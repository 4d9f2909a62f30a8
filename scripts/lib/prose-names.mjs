// Checks names in prose. For example, `Mutex.withLock` in a page or a comment must be exported by that module or be a
// member of a type that the module declares.
import { readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { filesBelow, packageFolders, publicModules, shown } from "./workspace.mjs"

/** The source of each public module, by module name. */
const modules = new Map()
for (const folder of packageFolders) {
  for (const module of publicModules(folder)) {
    const name = basename(module)
    const text = readFileSync(join(folder, "src", `${module}.ts`), "utf8")
    modules.set(name, `${modules.get(name) ?? ""}\n${text}`)
  }
}

const isDeclared = (text, name) =>
  new RegExp(`^export .*\\b${name}\\b|\\breadonly ${name}\\b|^\\s+${name}\\??:|\\bget ${name}\\(`, "m").test(text)

const sources = packageFolders.flatMap((folder) =>
  filesBelow(join(folder, "src"), (name) => name.endsWith(".ts") && name !== "index.ts")
)

const isProse = (path, line) => path.endsWith(".md") || /^\s*(?:\*|\/\/|\/\*)/.test(line)

/** Problems: names in these pages, or in comments of the sources, that do not exist. */
export const unknownNames = (pages) =>
  [...pages, ...sources].flatMap((path) =>
    readFileSync(path, "utf8").split("\n").flatMap((line, at) => {
      if (!isProse(path, line)) return []
      const code = [...line.matchAll(/`([^`]+)`/g)].map(([, code]) => code).join(" ")
      return [...code.matchAll(/(?<![\w./@])([A-Z]\w+)\.([A-Za-z]\w*)/g)].flatMap(([name, module, member]) =>
        modules.has(module) && !isDeclared(modules.get(module), member)
          ? [`${shown(path)}:${at + 1}: there is no ${name}`]
          : []
      )
    })
  )
