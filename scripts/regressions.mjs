// Which known problem is covered by which test. The titles of tests claim ids, docs/known-problems.md tells users about
// them, and the two have to agree:
//
// - each id is claimed by a title or listed as not ours, and never both;
// - each problem stands on the page once;
// - each title that the page names begins so in its file, and together they claim what their row says.
//
// A title claims ids at its beginning (`S10, B23: counts from ...`) or at its end (`... leaves nothing behind (H7)`).
//
//   node scripts/regressions.mjs          checks
//   node scripts/regressions.mjs --list   shows each id with its titles as well
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { blankOut } from "./lib/blank-out.mjs"
import { filesBelow, packageFolders, root, shown } from "./lib/workspace.mjs"

const series = (letter, count) => Array.from({ length: count }, (_, index) => `${letter}${index + 1}`)

/** What others suffered. The page answers each of them. */
const problemIds = [...series("S", 25), ...series("B", 60), ...series("G", 32)]
/** What has to hold here. */
const propertyIds = [...series("H", 7), ...series("L", 6)]
const ids = [...problemIds, ...propertyIds]

const page = join(root, "docs/known-problems.md")
const problems = []

const list = /[A-Z]\d+(?:, [A-Z]\d+)*/.source
const claim = new RegExp(`^(${list}):|\\((${list})\\)$`)

/** The first arguments that are texts, of all calls but those that skip a test, and that claim something. */
const titlesOf = (text) => {
  const { code } = blankOut(text)
  const titles = []
  for (const match of code.matchAll(/(\.(?:skip|todo))?(\(\s*)(["'`])([^"'`]*)\3/g)) {
    if (match[1] !== undefined) continue
    const from = match.index + match[2].length + 1
    const title = text.slice(from, from + match[4].length)
    const claims = claim.exec(title)
    if (claims !== null) titles.push({ title, ids: (claims[1] ?? claims[2]).split(", ") })
  }
  return titles
}

const isTest = (name) => name.endsWith(".test.ts")
const files = [
  ...packageFolders.flatMap((folder) => filesBelow(join(folder, "test"), isTest)),
  // Suites that several backends run
  ...["internal/suite", "streams/internal/suite"].flatMap((suite) =>
    filesBelow(join(root, "packages/testkit/src", suite), (name) => name.endsWith(".ts"))
  )
]
const titlesByFile = new Map(files.map((path) => [shown(path), titlesOf(readFileSync(path, "utf8"))]))

/** Each id that titles claim, with where they stand. */
const claimed = new Map()
for (const [file, titles] of titlesByFile) {
  for (const { ids, title } of titles) {
    for (const id of ids) claimed.set(id, [...(claimed.get(id) ?? []), `${file}: ${title}`])
  }
}

/** The rows of the page that begin with ids: the link and the title of each test that they name. */
const rowsOf = (text) => {
  const rows = []
  let section = ""
  text.split("\n").forEach((line, index) => {
    section = /^## (.*)$/.exec(line)?.[1] ?? section
    const begins = new RegExp(`^\\| *(${list}) *\\|`).exec(line)
    if (begins === null) return
    const named = [...line.matchAll(/\]\(\.\.\/([^)]+)\)((?:,? "[^"]+")+)/g)].flatMap(([, file, titles]) =>
      [...titles.matchAll(/"([^"]+)"/g)].map(([, title]) => ({ file, title }))
    )
    rows.push({
      ids: begins[1].split(", "),
      isOurs: section !== "Not ours",
      named,
      where: `${shown(page)}:${index + 1}`
    })
  })
  return rows
}

const rows = existsSync(page) ? rowsOf(readFileSync(page, "utf8")) : []
if (rows.length === 0) problems.push(`${shown(page)}: no rows with ids`)

const notOurs = new Set(rows.filter((row) => !row.isOurs).flatMap((row) => row.ids))
const listed = new Set()

for (const row of rows) {
  for (const id of row.ids) {
    if (!ids.includes(id)) problems.push(`${row.where}: there is no ${id}`)
    if (listed.has(id)) problems.push(`${row.where}: ${id} stands on the page already`)
    listed.add(id)
  }
  if (!row.isOurs) {
    for (const id of row.ids.filter((id) => claimed.has(id))) {
      problems.push(`${row.where}: ${id} is listed as not ours, but a test claims it: ${claimed.get(id)[0]}`)
    }
    continue
  }
  const shownIds = new Set()
  for (const { file, title } of row.named) {
    const found = (titlesByFile.get(file) ?? []).filter((known) => known.title.startsWith(title))
    if (found.length === 0) problems.push(`${row.where}: no title in ${file} begins with "${title}"`)
    found.flatMap((known) => known.ids).forEach((id) => shownIds.add(id))
  }
  for (const id of row.ids.filter((id) => !shownIds.has(id))) {
    problems.push(`${row.where}: none of the tests that are named claims ${id}`)
  }
}

for (const id of ids) {
  if (!claimed.has(id) && !notOurs.has(id)) problems.push(`${id}: no test claims it, and it is not listed as not ours`)
}
for (const id of problemIds) {
  if (!listed.has(id)) problems.push(`${id}: ${shown(page)} does not mention it`)
}

if (process.argv.includes("--list")) {
  for (const id of ids) {
    console.log(`${id}${notOurs.has(id) ? " not ours" : ""}`)
    for (const where of claimed.get(id) ?? []) console.log(`  ${where}`)
  }
}
for (const problem of problems) console.error(problem)
const tested = (some) => some.filter((id) => claimed.has(id)).length
console.log(
  `regressions: ${tested(problemIds)} of ${problemIds.length} known problems tested, ${notOurs.size} not ours; ` +
    `${tested(propertyIds)} of ${propertyIds.length} properties tested; ${problems.length} problem(s)`
)
process.exitCode = problems.length > 0 ? 1 : 0
