// Checks the documentation:
//
// - The TypeScript compiles: each ```ts block in README.md, docs/, each package's README.md and AGENTS.md, and the
//   comments in packages/*/src. Each block is a separate module and must not need another one.
// - Each exported name has a description, and what a program calls or reads has an example (see lib/documented.mjs).
// - docs/README.md names each module.
// - Names in prose, such as `Mutex.withLock`, exist.
// - Pages with install lines say that the packages are not on npm yet, and `npx` lines cannot run another package.
//
//   node scripts/doc-snippets.mjs
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { docBlocks, pages } from "./lib/doc-blocks.mjs"
import { undocumented } from "./lib/documented.mjs"
import { unknownNames } from "./lib/prose-names.mjs"
import { outsideBarrels, packageFolders, ports, publicModules, root, shown, unstable } from "./lib/workspace.mjs"

// In this folder, packages resolve as they do in an application that uses effect-simba
const folder = join(root, "examples/node_modules/.cache/doc-snippets")

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })

const origins = new Map()
for (const { code, line, name, path } of docBlocks()) {
  origins.set(`${name}.ts`, { path, line })
  writeFileSync(join(folder, `${name}.ts`), code)
}

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
      // Examples may declare a name just to show it
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

const documentedModules = (folder) => publicModules(folder).filter((module) => !unstable.has(module))
const { called, names, problems } = undocumented(packageFolders, documentedModules)
/** The documented modules that a package's index exports. */
const onIndex = (folder) => documentedModules(folder).filter((module) => !outsideBarrels.has(basename(module)))
const indexed = undocumented(
  packageFolders.filter((folder) => /^(?:core|redis|testkit)$/.test(basename(folder))),
  onIndex
)
problems.push(...unknownNames(pages))
// Until the packages are on npm, a page with an install line must say that they are not
const isUnpublished = /^## Not on npm yet$/m.test(readFileSync(join(root, "docs/requirements.md"), "utf8"))
for (const path of pages) {
  const text = readFileSync(path, "utf8")
  const installs = /^(?:npm install|npx) .*(?:@effect-simba|effect-simba|fake-redis)|`npx effect-simba\b/m.test(text)
  const says = text.includes("requirements.md#not-on-npm-yet") || path.endsWith("requirements.md")
  if (installs && isUnpublished && !says) {
    problems.push(`${shown(path)} installs what is not on npm yet, and does not say so`)
  }
  if (!isUnpublished && text.includes("#not-on-npm-yet")) {
    problems.push(`${shown(path)} says that the packages are not on npm`)
  }
  // `fake-redis` is a command in a package with a different name. Without `--no`, npx would download any package
  // published as `fake-redis`. Without `--`, npm would take the flags that follow.
  for (const [call] of text.matchAll(/\bnpx (?!--no -- )(?:--no |fake-redis\b).*/g)) {
    problems.push(`${shown(path)}: ${call}: npx --no --`)
  }
}

const index = readFileSync(join(root, "docs/README.md"), "utf8")
for (const folder of packageFolders) {
  for (const module of publicModules(folder)) {
    if (!index.includes(`\`${basename(module)}\``)) problems.push(`docs/README.md does not name the ${module} module`)
  }
}

/** Users have to learn each name, so a new name should replace an old one. Raise this number only on purpose. */
const mostNames = 220
const { members, names: stable } = undocumented(
  packageFolders,
  (folder) => documentedModules(folder).filter((module) => !ports.has(basename(module)))
)
if (stable > mostNames) problems.push(`${stable} names, not counting those of ports; at most ${mostNames} are allowed`)
if (problems.length > 0) console.error(problems.join("\n"))
const documented = `${problems.length > 0 ? "not all" : "all"} documented`
console.log(
  `${names} exported names, ${stable} without those of ports, ${indexed.names} on the indexes: ${documented}; ${called} are called or read, and have an example; ${members} members of records, such as metrics, are not counted`
)
process.exitCode = failed || problems.length > 0 ? 1 : 0
