// Compares the map in CONTRIBUTING.md ("Where things are") with the tree. Each name in the map must exist, and the map
// must name each folder of sources and tests.
//
//   node scripts/map.mjs
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { filesBelow, packageFolders, root, shown } from "./lib/workspace.mjs"

const lines = readFileSync(join(root, "CONTRIBUTING.md"), "utf8").split("\n")
const problems = []

/** The lines of a section with their numbers, up to the next heading of the same or a higher level. */
const section = (title) => {
  const start = lines.findIndex((line) => line.replace(/^#+ /, "") === title || line.startsWith(`### ${title}:`))
  if (start === -1) throw new Error(`CONTRIBUTING.md has no section ${title}`)
  const rank = lines[start].indexOf(" ")
  const length = lines.slice(start + 1).findIndex((line) => /^#+ /.test(line) && line.indexOf(" ") <= rank)
  return lines.slice(start, length === -1 ? undefined : start + 1 + length).map((text, index) => ({
    text,
    number: start + index + 1
  }))
}

/** The names in backticks, without commands and code. */
const namesIn = ({ number, text }) =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => ({ name, number })).filter(({ name }) =>
    /^(?:@[\w-]+\/)?[\w./-]+$/.test(name)
  )

const foldersBelow = (folder) =>
  readdirSync(folder, { withFileTypes: true }).filter((entry) =>
    entry.isDirectory() && entry.name !== "node_modules" && !entry.name.startsWith(".")
  ).flatMap(({ name }) => [name, ...foldersBelow(join(folder, name)).map((below) => `${name}/${below}`)])

/** The names that exist under a folder: folders, and files with or without their extensions. */
const known = (folder) =>
  new Set([
    ...foldersBelow(folder).flatMap((name) => [name, basename(name)]),
    ...filesBelow(folder, () => true).flatMap((path) => [basename(path), basename(path).replace(/\.\w+$/, "")])
  ])

const sources = packageFolders.flatMap((folder) =>
  filesBelow(join(folder, "src"), (name) => /\.(?:ts|lua)$/.test(name))
)
const programText = sources.map((path) => readFileSync(path, "utf8")).join("\n")
/** Whether a name occurs in the code, such as a function or a field. */
const isWord = (name) => new RegExp(`(?<![\\w$])${name.replaceAll(".", "\\.")}(?![\\w$])`).test(programText)
const everywhere = new Set(sources.map((path) => basename(path)))

for (const folder of packageFolders) {
  const src = join(folder, "src")
  const place = shown(src)
  const names = section(place).flatMap(namesIn)
  const all = known(src)
  for (const { name, number } of names) {
    if (!all.has(name) && !everywhere.has(basename(name)) && !isWord(name)) {
      problems.push(`CONTRIBUTING.md:${number}: ${place} has no ${name}`)
    }
  }
  const named = new Set(names.map(({ name }) => name))
  const isHome = (below) => basename(below) === "internal" && [...named].some((name) => name.startsWith(`${below}/`))
  for (const below of foldersBelow(src)) {
    if (!named.has(below) && !named.has(basename(below)) && !isHome(below)) {
      problems.push(`CONTRIBUTING.md: ${place} lacks ${below}`)
    }
  }
}

// The sections "Tests" and "Other folders" use paths from the root
const paths = [...section("Tests"), ...section("Other folders")].flatMap(namesIn).filter(({ name }) =>
  /^[\w.-]+\//.test(name) || readdirSync(root).includes(name)
)
for (const { name, number } of paths) {
  if (!existsSync(join(root, name)) && !name.startsWith("packages/*") && !name.startsWith("dist/")) {
    problems.push(`CONTRIBUTING.md:${number}: there is no ${name}`)
  }
}
const named = new Set(paths.map(({ name }) => name))
const top = readdirSync(root, { withFileTypes: true }).filter((entry) =>
  entry.isDirectory() && !/^\.|^node_modules$/.test(entry.name)
)
for (const { name } of top) {
  if (name !== "packages" && !named.has(name)) problems.push(`CONTRIBUTING.md: the map lacks the ${name} folder`)
}
// The map may name a package's test folder as a whole
for (const folder of packageFolders) {
  const test = shown(join(folder, "test"))
  if (named.has(test)) continue
  for (const below of readdirSync(join(root, test), { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    if (below.name !== "support" && !named.has(`${test}/${below.name}`)) {
      problems.push(`CONTRIBUTING.md: the map lacks ${test}/${below.name}`)
    }
  }
}

// Each quoted sentence must be the title of a test
const titles = filesBelow(join(root, "packages"), (name) => name.endsWith(".ts")).filter((path) =>
  /\/(?:test|suite)\//.test(path)
)
  .map((path) => readFileSync(path, "utf8")).join("\n").toLowerCase()
for (const { number, text } of section("Pieces that look superfluous")) {
  for (const [, title] of text.matchAll(/"([^"]+)"/g)) {
    if (!titles.includes(title.replace(/\.$/, "").toLowerCase())) {
      problems.push(`CONTRIBUTING.md:${number}: no test is called "${title}"`)
    }
  }
}

for (const problem of problems) console.error(problem)
console.log(`map in CONTRIBUTING.md: ${problems.length} problem(s)`)
process.exitCode = problems.length > 0 ? 1 : 0
