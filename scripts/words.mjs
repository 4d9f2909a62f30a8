// Finds retired words in prose and in identifiers. The glossary in CONTRIBUTING.md lists the words to use instead.
//
//   node scripts/words.mjs            all problems, and their count
//   node scripts/words.mjs docs       the problems under a path
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { filesBelow, root, shown } from "./lib/workspace.mjs"

/** Phrases that are not allowed in comments and pages, outside code, and what to write instead. */
const phrases = [
  [/\bagain and again\b|\bover and over\b/i, "repeatedly"],
  [/\ball the same\b/i, "anyway, still"],
  [/\banew\b/i, "again"],
  [/\banswer(?:s|ed|ing)?\b/i, "returns, replies, responds"],
  [/\battend(?:s|ed|ing|ant)?\b/i, "watch, wait for"],
  [/\bbeats?\b/i, "heartbeat"],
  [/\bdoubtful\b/i, "uncertain"],
  [/\bfail-overs?\b/i, "failover"],
  [/\bfor ever\b/i, "forever"],
  [/\bfor good\b/i, "permanently"],
  [/\bgave\b(?! up)/i, "returned, passed"],
  [/\b(?:give[ns]?|giving|hand(?:s|ed|ing)?) back\b/i, "release, yield"],
  [/\b(?:has|have|had) no regard\b/i, "ignore"],
  [/\b(?:failures?|times|ones?) in a row\b/i, "consecutive"],
  [/\bliving\b/i, "alive, live"],
  [/\blook(?:s|ed|ing)? (?:at|again)\b/i, "read, examine, poll"],
  [/\b(?:a|the|first|second|next|last|each|every|own|one|no) looks?\b/i, "poll, check"],
  [/\bmend(?:s|ed|ing)?\b/i, "fix"],
  [/\bnews\b/i, "notification, change"],
  [/\bone after the other\b/i, "one after another"],
  [/(?<!')\bours\b(?!')/i, "of effect-simba, this library's"],
  [/\bstock (?:consumer|contender|process|waiter|owner|release|one)/i, "Simba contender, Go consumer"],
  [/\btells?\b(?! apart)|\btold\b/i, "notify, report, return"],
  [/\btidy(?:ing)?\b|\btidied\b/i, "remove, clean up"],
  [/\bwhatever\b|\bwhoever\b/i, "everything that, the one that"],
  [/\bwhose turn it is no more\b/i, "whose turn is over"]
]

/**
 * Words that are not allowed in identifiers, and what to write instead. Identifiers are split at camel case. A one-word
 * string counts as an identifier.
 */
const words = new Map(Object.entries({
  again: "repeat, retry, second",
  anew: "again",
  answer: "reply, result",
  answered: "replied",
  answering: "replying",
  answers: "replies, results",
  attend: "watch",
  attended: "watched",
  beat: "heartbeat",
  beats: "heartbeats",
  doubtful: "uncertain",
  gave: "returned",
  given: "passed, granted, delivered, handed over",
  living: "alive",
  look: "poll, check, read",
  looked: "polled, read",
  looking: "polling",
  looks: "polls",
  news: "changed",
  ours: "own",
  recent: "latest",
  seen: "known, latest, observed",
  stock: "simba, go",
  tell: "notify",
  tells: "notifies",
  terms: "periods, options",
  tidy: "remove",
  told: "notified",
  unread: "undelivered",
  whom: "target, owner"
}))

/** Identifiers that split a single word in two. */
const compounds = [[/failOver|FailOver/, "failover"]]

/** Names that say too little on their own. They are not allowed in the packages' sources. */
const bare = new Map(Object.entries({
  by: "increment, writer, party, or what it is by",
  part: "release, or what it is a part of",
  row: "streak, entry, or what stands in it"
}))

/** Files in which a retired word is an established term. */
const allowed = [
  // `seen-time` of XINFO CONSUMERS
  { files: /^packages\/fake-redis\/src\//, names: ["seenAt"] },
  // BY of SORT and ZRANGE
  {
    files:
      /^packages\/fake-redis\/src\/internal\/(?:commands\/sort|commands\/sortedSetRanges|data\/sortedSetBounds)\.ts$/,
    names: ["by"]
  },
  // How far a clock steps, how late a message is, and how far `streams rewind --by` goes back
  {
    files: /^packages\/(?:testkit\/src\/(?:Simulation|internal\/)|cli\/src\/internal\/streamPositions)/,
    names: ["by"]
  },
  // Rows of SQL, of a table, and of a picture
  { files: /\/(?:SqlFence|output|timeline)\.ts$/, names: ["row"] },
  // Terms of leaders, as in Raft
  { files: /^examples\//, names: ["terms", "termsOf"] },
  // Fields of stored benchmark results
  { files: /^benchmarks\//, names: ["ours", "unread"] }
]

const prose = /\.(?:md|ts|tsx|mjs|lua|yml)$/
const isGenerated = (path) =>
  /\.generated\.ts$|\/(?:node_modules|dist|\.build|\.cache|\.vitepress\/cache)\/|^packages\/core\/docs\//.test(path)

/** Replaces a text with blanks but keeps its line breaks. */
const blank = (text) => text.replace(/[^\n]/g, " ")

const comment = { ts: /\/\*[^]*?\*\/|(?<![:"'`\w])\/\/[^\n]*/g, lua: /--[^\n]*/g, yml: /#[^\n]*/g }

const quoted = /"(?:[^"\n\\]|\\.)*"|'(?:[^'\n\\]|\\.)*'/g
const token =
  /"(?:[^"\n\\]|\\.)*"|'(?:[^'\n\\]|\\.)*'|(?<=[(,=:?]\s*)\/(?![*/])(?:[^/\\\n[]|\\.|\[[^\]\n]*\])+\/|[`{}]/g

/** Blanks strings, templates and regular expressions in TypeScript code. */
const codeOf = (text) => {
  const braces = []
  let code = ""
  let at = 0
  while (true) {
    token.lastIndex = at
    const match = token.exec(text)
    if (match === null) return code + text.slice(at)
    const [found] = match
    code += text.slice(at, match.index)
    at = match.index + found.length
    if (found === "{") braces.push(found)
    const isTemplate = found === "`" || found === "}" && braces.pop() === "${"
    code += isTemplate || !"{}".includes(found) ? blank(found) : found
    if (!isTemplate) continue
    const [rest, end] = /^(?:[^`\\$]|\\[^]|\$(?!\{))*(`|\$\{)?/.exec(text.slice(at))
    if (end === "${") braces.push(end)
    code += blank(rest)
    at += rest.length
  }
}

/** Splits a text into code, without comments and strings, and prose, without code in backticks. */
const divide = (path, text) => {
  const withoutCode = (prose) =>
    prose.replace(/```[^]*?```/g, blank).replace(/`[^`\n]*`/g, blank).replace(/"[^"\n]*"/g, blank)
  if (path.endsWith(".md")) return { prose: withoutCode(text), code: "" }
  const pattern = path.endsWith(".lua") ? comment.lua : path.endsWith(".yml") ? comment.yml : comment.ts
  let comments = blank(text)
  for (const found of text.matchAll(pattern)) {
    comments = comments.slice(0, found.index) + found[0] + comments.slice(found.index + found[0].length)
  }
  const texts = text.replace(pattern, blank)
  return {
    prose: withoutCode(comments),
    code: path.endsWith(".lua") ? texts.replace(quoted, blank) : codeOf(texts),
    texts
  }
}

/**
 * Strings of several words are prose, such as test titles, log lines and messages. Strings of one word are names, such
 * as tags.
 */
const sentence = /"[^"\n]*[a-z] [a-z][^"\n]*"|`[^`\n]*[a-z] [a-z][^`\n]*`/g
const tag = /"([A-Z][A-Za-z]+)"/g

const wordsOf = (identifier) =>
  identifier.split(/[_$]|(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/).map((word) => word.toLowerCase())

const only = process.argv[2] ?? ""
const folders = ["docs", "packages", "scripts", "site", "playground", "examples", "benchmarks"]
const pages = ["README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md"].map((name) => join(root, name))
const files = [...pages, ...folders.flatMap((folder) => filesBelow(join(root, folder), (name) => prose.test(name)))]
  .filter((path) => shown(path).startsWith(only))
if (files.length === 0) {
  console.error(`there is no text under "${only}"`)
  process.exit(2)
}

const problems = []
const isAllowed = (path, name) => allowed.some(({ files, names }) => files.test(path) && names.includes(name))
for (const path of files) {
  const name = shown(path)
  if (isGenerated(name) || name === "scripts/words.mjs") continue
  const { code, prose, texts = "" } = divide(name, readFileSync(path, "utf8"))
  const report = (line, text) => problems.push(`${name}:${line + 1}: ${text}`)
  const inGlossary = name === "CONTRIBUTING.md"
  const checkProse = (line, at) => {
    for (const [pattern, instead] of phrases) {
      const found = pattern.exec(line)
      const isFree = inGlossary && line.startsWith("|") || isAllowed(name, found?.[0])
      if (found !== null && !isFree) report(at, `"${found[0]}": ${instead}`)
    }
  }
  prose.split("\n").forEach(checkProse)
  // The fake Redis repeats Redis's messages
  if (!name.startsWith("packages/fake-redis/") && !name.endsWith(".lua")) {
    texts.split("\n").forEach((line, at) => (line.match(sentence) ?? []).forEach((text) => checkProse(text, at)))
  }
  const isSource = /^packages\/[^/]+\/src\//.test(name)
  const checkName = (identifier, at) => {
    if (isAllowed(name, identifier)) return
    if (isSource && bare.has(identifier)) report(at, `${identifier}: ${bare.get(identifier)}`)
    for (const [compound, instead] of compounds) {
      if (compound.test(identifier)) report(at, `${identifier}: ${instead}`)
    }
    for (const word of wordsOf(identifier)) {
      if (words.has(word)) report(at, `${identifier}: ${words.get(word)}`)
    }
  }
  code.split("\n").forEach((line, at) =>
    new Set(line.match(/[A-Za-z_$][\w$]*/g) ?? []).forEach((id) => checkName(id, at))
  )
  texts.split("\n").forEach((line, at) => [...line.matchAll(tag)].forEach(([, id]) => checkName(id, at)))
}
for (const problem of problems) console.error(problem)
console.log(`words: ${files.length} files, ${problems.length} problem(s)`)
process.exitCode = problems.length > 0 ? 1 : 0
