// Extracts the TypeScript from the documentation: each ```ts block in the pages and in the sources' doc comments.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { filesBelow, packageFolders, root, shown } from "./workspace.mjs"

/** The paths of the documentation's pages. */
export const pages = [
  join(root, "README.md"),
  ...filesBelow(join(root, "docs"), (name) => name.endsWith(".md")),
  ...packageFolders.flatMap((folder) => ["README.md", "AGENTS.md"].map((name) => join(folder, name)))
]

// Skip barrels: they repeat their modules' comments
const modules = packageFolders.flatMap((path) =>
  filesBelow(join(path, "src"), (name) => name.endsWith(".ts") && name !== "index.ts")
)

/**
 * The fenced blocks in a text, each with its language and the number of its first line, counted from 1. `prefix`
 * matches the start of each line in a comment.
 */
export const fencedBlocks = (text, prefix = /^/) => {
  const blocks = []
  let block
  text.split("\n").forEach((raw, index) => {
    const begins = prefix.exec(raw)
    const line = begins === null ? raw : raw.slice(begins[0].length)
    const fence = /^\s*(`{3,})\s*(\w*)/.exec(line)
    if (block === undefined) {
      if (fence !== null) block = { language: fence[2], indent: line.indexOf("`"), line: index + 2, lines: [] }
    } else if (fence !== null && fence[2] === "") {
      blocks.push(block)
      block = undefined
    } else {
      block.lines.push(line.slice(Math.min(block.indent, line.length - line.trimStart().length)))
    }
  })
  if (block !== undefined) blocks.push(block)
  return blocks.map(({ language, line, lines }) => ({ language, line, code: lines.join("\n") }))
}

const blocksOf = (path, prefix) =>
  fencedBlocks(readFileSync(path, "utf8"), prefix)
    .filter(({ language }) => language === "ts")
    .map(({ code, line }) => ({
      path: shown(path),
      line,
      name: `${shown(path).replaceAll(/[^\w]+/g, "-")}-${line}`,
      code: `${code}\nexport {}\n`
    }))

/** All TypeScript blocks, each with its position, a file name, and its text as a module. */
export const docBlocks = () => [
  ...pages.flatMap((path) => blocksOf(path)),
  ...modules.flatMap((path) => blocksOf(path, /^\s*\* ?/))
]

/**
 * Whether a block is a test or runs a store's contract suite. The pack check runs these blocks on the packed packages.
 */
export const isTest = ({ code }) =>
  /^import \{.*\b(?:it|layer|test)\b.*\} from "(?:@effect\/)?vitest"$/m.test(code) || /^\w+Suite\.suite\(/m.test(code)
