// The TypeScript in the documentation has to compile: each ```ts block of README.md, docs/ and packages/*/README.md, and
// each one in a comment of packages/*/src. A block is a module of its own; one that leans on another is a mistake.
// Each exported name has to be described, with an example (see lib/documented.mjs), and docs/README.md names each module.
//
//   node scripts/doc-snippets.mjs
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { undocumented } from "./lib/documented.mjs"
import { filesBelow, packageFolders, publicModules, root, shown } from "./lib/workspace.mjs"

// Below a folder whose packages are those of an application that uses ours
const folder = join(root, "examples/node_modules/.cache/doc-snippets")

const pages = [
  join(root, "README.md"),
  ...filesBelow(join(root, "docs"), (name) => name.endsWith(".md")),
  ...packageFolders.map((path) => join(path, "README.md"))
]
// Barrels repeat what their modules say
const modules = packageFolders.flatMap((path) =>
  filesBelow(join(path, "src"), (name) => name.endsWith(".ts") && name !== "index.ts")
)

/** The blocks of a text, each with the line (from 1) of its first line. `prefix` is what a line of a comment begins with. */
const blocksOf = (text, prefix) => {
  const blocks = []
  let block
  text.split("\n").forEach((raw, index) => {
    const begins = prefix.exec(raw)
    const line = begins === null ? raw : raw.slice(begins[0].length)
    const fence = /^\s*(`{3,})\s*(\w*)/.exec(line)
    if (block === undefined) {
      if (fence !== null) {
        block = { isTypeScript: fence[2] === "ts", indent: line.indexOf("`"), line: index + 2, lines: [] }
      }
    } else if (fence !== null && fence[2] === "") {
      if (block.isTypeScript) blocks.push(block)
      block = undefined
    } else {
      block.lines.push(line.slice(Math.min(block.indent, line.length - line.trimStart().length)))
    }
  })
  if (block?.isTypeScript) blocks.push(block)
  return blocks
}

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })

const read = (path) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

const origins = new Map()
const collect = (paths, prefix) => {
  for (const path of paths) {
    for (const { line, lines } of blocksOf(read(path), prefix)) {
      const name = `${shown(path).replaceAll(/[^\w]+/g, "-")}-${line}.ts`
      origins.set(name, { path: shown(path), line })
      writeFileSync(join(folder, name), `${lines.join("\n")}\nexport {}\n`)
    }
  }
}
collect(pages, /^/)
collect(modules, /^\s*\* ?/)

writeFileSync(
  join(folder, "tsconfig.json"),
  JSON.stringify({
    extends: join(root, "tsconfig.base.json"),
    files: [...origins.keys()],
    compilerOptions: {
      rootDir: root,
      noEmit: true,
      composite: false,
      incremental: false,
      declarationMap: false,
      // What an example declares is there to be read
      noUnusedLocals: false,
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")]
    }
  })
)

const tsc = spawnSync(process.execPath, [
  join(root, "node_modules/typescript/bin/tsc"),
  "-p",
  folder,
  "--pretty",
  "false"
], {
  cwd: folder,
  encoding: "utf8"
})
if (tsc.error !== undefined) throw tsc.error
const output = `${tsc.stdout}${tsc.stderr}`.split("\n").map((text) => {
  const at = /^(.+\.ts)\((\d+),(\d+)\): (.*)$/.exec(text)
  const origin = at === null ? undefined : origins.get(at[1].split(/[\\/]/).at(-1))
  return origin === undefined ? text : `${origin.path}:${origin.line + Number(at[2]) - 1}:${at[3]}: ${at[4]}`
})
const errors = output.join("\n").trim()
if (errors !== "") console.error(errors)
const failed = tsc.status !== 0 || errors !== ""
console.log(
  `${origins.size} blocks of TypeScript in the documentation: ${failed ? "they do not all compile" : "they compile"}`
)

const { names, problems } = undocumented(packageFolders, publicModules)
const index = read(join(root, "docs/README.md"))
for (const folder of packageFolders) {
  for (const module of publicModules(folder)) {
    if (!index.includes(`\`${basename(module)}\``)) problems.push(`docs/README.md does not name the module ${module}`)
  }
}
if (problems.length > 0) console.error(problems.join("\n"))
const documented = `${problems.length > 0 ? "not all" : "all"} documented with an example`
console.log(`${names} exported names: ${documented}`)
process.exitCode = failed || problems.length > 0 ? 1 : 0
