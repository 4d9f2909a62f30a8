// Adds extra words to the site's search, and checks that each of them finds its section.
import { readdirSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { dist, site } from "./paths.mjs"
import { searchWords } from "./searchWords.mjs"

const shared = { fields: ["title", "titles", "text", "words"], storeFields: ["title", "titles"] }
const searchOptions = {
  fuzzy: 0.2,
  prefix: true,
  combineWith: "AND",
  boost: { title: 4, text: 2, titles: 1, words: 16 }
}

/** Returns the extra words for a section. Words for a whole page belong to its first section. */
const wordsOf = ({ id, titles }) => [
  ...(searchWords[id] ?? []),
  ...(titles.length === 0 ? searchWords[id.split("#")[0]] ?? [] : [])
]

/** The options for VitePress. The `words` field contains a section's extra search words. */
export const miniSearch = {
  options: {
    ...shared,
    extractField: (document, field) => field === "words" ? wordsOf(document).join(" ") : document[field]
  },
  searchOptions
}

const require = createRequire(createRequire(join(site, "package.json")).resolve("vitepress"))

/** Loads the index like a browser. */
const loadIndex = async () => {
  const { default: MiniSearch } = await import(pathToFileURL(require.resolve("minisearch")).href)
  const chunks = join(dist, "assets/chunks")
  const file = readdirSync(chunks).find((name) => name.startsWith("@localSearchIndexroot"))
  const { default: json } = await import(pathToFileURL(join(chunks, file)).href)
  return MiniSearch.loadJSON(json, { ...shared, searchOptions })
}

/**
 * Searches for each word. Returns the number of words, and those whose section is not among the first three results.
 */
export const checkSearch = async () => {
  const index = await loadIndex()
  const words = Object.entries(searchWords).flatMap(([section, words]) => words.map((word) => ({ section, word })))
  const lost = words.flatMap(({ section, word }) => {
    const first = index.search(word).slice(0, 3).map(({ id }) => id)
    return first.some((id) => id === section || id.split("#")[0] === section)
      ? []
      : [`"${word}" finds ${first.join(", ") || "nothing"} before ${section}`]
  })
  return { words: words.length, lost }
}
