// Refuses retired words in prose and in identifiers. The glossary in CONTRIBUTING.md has the word to use instead.
//
//   node scripts/words.mjs            all problems, and their count
//   node scripts/words.mjs docs       those below a path
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { filesBelow, root, shown } from "./lib/workspace.mjs"

/** In comments and pages, outside of code: what is refused, and what a native maintainer would write. */
const phrases = [
  [/\banew\b/i, "again"],
  [/\banswer(?:s|ed|ing)?\b/i, "returns, replies, responds"],
  [/\battend(?:s|ed|ing|ant)?\b/i, "watch, wait for"],
  [/\bbeats?\b/i, "heartbeat"],
  [/\bdoubtful\b/i, "uncertain"],
  [/\bgave\b/i, "returned, passed"],
  [/\b(?:give[ns]?|giving) back\b/i, "release, yield"],
  [/\b(?:failures?|times|ones?) in a row\b/i, "consecutive"],
  [/\bfor ever\b/i, "forever"],
  [/\bliving\b/i, "alive, live"],
  [/\blook(?:s|ed|ing)? at\b/i, "read, examine"],
  [/\b(?:a|the|first|second|next|last|each|every|own|one|no) looks?\b/i, "poll, check"],
  [/\bmend(?:s|ed|ing)?\b/i, "fix"],
  [/\bnews\b/i, "notification, change"],
  [/(?<!')\bours\b(?!')/i, "of effect-simba, this library's"],
  [/\bstock (?:consumer|contender|process|waiter|owner|release|one)/i, "Simba contender, Go consumer"],
  [/\btells?\b(?! apart)|\btold\b/i, "notify, report, return"],
  [/\btidy\b/i, "remove, clean up"],
  [/\bwhatever\b|\bwhoever\b/i, "everything that, the one that"],
  [/\ball the same\b/i, "anyway, still"]
]

/** Words of identifiers in the sources of the packages, by where camel case divides. */
const words = new Map(Object.entries({
  anew: "again",
  attend: "watch",
  attended: "watched",
  beats: "heartbeats",
  doubtful: "uncertain",
  gave: "returned",
  living: "alive",
  news: "changed",
  ours: "own",
  stock: "simba, go",
  terms: "periods, options",
  told: "notified"
}))

const prose = /\.(?:md|ts|tsx|mjs|lua|yml)$/
const isGenerated = (path) =>
  /\.generated\.ts$|\/(?:node_modules|dist|\.build|\.cache|\.vitepress\/cache)\/|^packages\/core\/docs\//.test(path)

/** Blanks a text and keeps its lines. */
const blank = (text) => text.replace(/[^\n]/g, " ")

const comment = { ts: /\/\*[^]*?\*\/|(?<![:"'`\w])\/\/[^\n]*/g, lua: /--[^\n]*/g, yml: /#[^\n]*/g }

/** The code without comments and texts, and the comments without code in backticks. */
const divide = (path, text) => {
  const withoutCode = (prose) =>
    prose.replace(/```[^]*?```/g, blank).replace(/`[^`\n]*`/g, blank).replace(/"[^"\n]*"/g, blank)
  if (path.endsWith(".md")) return { prose: withoutCode(text), code: "" }
  const pattern = path.endsWith(".lua") ? comment.lua : path.endsWith(".yml") ? comment.yml : comment.ts
  let comments = blank(text)
  for (const found of text.matchAll(pattern)) {
    comments = comments.slice(0, found.index) + found[0] + comments.slice(found.index + found[0].length)
  }
  const code = text.replace(pattern, blank).replace(/"(?:[^"\n\\]|\\.)*"|'(?:[^'\n\\]|\\.)*'/g, blank)
  return { prose: withoutCode(comments), code }
}

const wordsOf = (identifier) =>
  identifier.split(/[_$]|(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/).map((word) => word.toLowerCase())

const only = process.argv[2] ?? ""
const folders = ["docs", "packages", "scripts", "site", "playground", "examples", "benchmarks"]
const pages = ["README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md"].map((name) => join(root, name))
const files = [...pages, ...folders.flatMap((folder) => filesBelow(join(root, folder), (name) => prose.test(name)))]

const problems = []
for (const path of files) {
  const name = shown(path)
  if (isGenerated(name) || !name.startsWith(only) || name === "scripts/words.mjs") continue
  // Its words are those of Redis, whose commands look, tell and answer
  if (name.startsWith("packages/fake-redis/src/")) continue
  // Tests, and the contract suites, name what they assert
  if (/\/(?:test|suite)\//.test(name)) continue
  const { code, prose } = divide(name, readFileSync(path, "utf8"))
  const report = (line, text) => problems.push(`${name}:${line + 1}: ${text}`)
  const inGlossary = name === "CONTRIBUTING.md"
  prose.split("\n").forEach((line, at) => {
    for (const [pattern, instead] of phrases) {
      const found = pattern.exec(line)
      if (found !== null && !(inGlossary && line.startsWith("|"))) report(at, `"${found[0]}": ${instead}`)
    }
  })
  if (!/^packages\/[^/]+\/src\//.test(name)) continue
  code.split("\n").forEach((line, at) => {
    for (const identifier of new Set(line.match(/[A-Za-z_$][\w$]*/g) ?? [])) {
      for (const word of wordsOf(identifier)) {
        if (words.has(word)) report(at, `${identifier}: ${words.get(word)}`)
      }
    }
  })
}
for (const problem of problems) console.error(problem)
console.log(`words: ${files.length} files, ${problems.length} problem(s)`)
process.exitCode = problems.length > 0 ? 1 : 0
