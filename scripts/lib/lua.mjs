// Reads and assembles the Lua scripts. Each script is a file in a `lua` folder and may include files from
// `lua/include`.
//
// A file starts with a header, whose lines begin with `---`. A line `--- @include path` is replaced with the body of
// that file, unless the file was already included. An include within a block is local to the block, so its functions
// are only defined if the block runs.
import { parse } from "luaparse"
import { readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { filesBelow, packageFolders } from "./workspace.mjs"

export const nameOf = (path) => basename(path, ".lua")

const includeLine = /^( *)--- @include (\S+)$/
const isHeader = (line) => line.startsWith("---") && !includeLine.test(line)

/** The folders that contain a `lua` folder. */
export const folders = () => [
  ...new Set(
    packageFolders
      .flatMap((folder) => luaBelow(join(folder, "src")))
      .map((path) => path.replace(/[\\/]lua[\\/](?:include[\\/])?[^\\/]+$/, ""))
  )
]

const luaBelow = (folder) => filesBelow(folder, (name) => name.endsWith(".lua"))

export const includesOf = (folder) => luaBelow(join(folder, "lua/include"))

export const scriptsOf = (folder) => luaBelow(join(folder, "lua")).filter((path) => basename(dirname(path)) === "lua")

/** Splits a file into its header, without the dashes, and its body. */
export const split = (text) => {
  const lines = text.split("\n")
  const end = lines.findIndex((line) => !line.startsWith("---"))
  return {
    header: lines.slice(0, end).filter(isHeader).map((line) => line.replace(/^--- ?/, "")),
    body: [...lines.slice(0, end).filter((line) => !isHeader(line)), ...lines.slice(end)].join("\n")
  }
}

/** The text of a script with its includes expanded. `bodies` overrides the bodies of files by name. */
export const assemble = (path, bodies = {}) => {
  const expand = (path, known) => {
    if (known.has(path)) return ""
    known.add(path)
    return (bodies[nameOf(path)] ?? split(readFileSync(path, "utf8")).body)
      .split("\n")
      .map((line) => {
        const include = includeLine.exec(line)
        if (include === null) return line
        const [, indentation, name] = include
        return `\n${expand(join(dirname(path), name), indentation === "" ? known : new Set(known))}\n`
      })
      .join("\n")
  }
  return expand(path, new Set())
}

/** Strips comments and indentation, which the server does not need. */
export const strip = (text) => {
  const { comments } = parse(text, { luaVersion: "5.1", ranges: true })
  const code = comments.reduceRight((code, { range: [from, to] }) => code.slice(0, from) + code.slice(to), text)
  return `\n${code.split("\n").map((line) => line.trim()).filter((line) => line !== "").join("\n")}\n`
}

/** The pieces of a file as they occur in stripped scripts. The file is cut at its includes. */
export const partsOf = (path) => {
  const cut = "local cutHere"
  const { body } = split(readFileSync(path, "utf8"))
  const marked = body.split("\n").map((line) => includeLine.test(line) ? cut : line).join("\n")
  return strip(marked).split(`${cut}\n`).map((text) => text.trimStart()).filter((text) => text !== "")
}
