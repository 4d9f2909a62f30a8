// Finds numbers that are times but whose names lack the unit. Such a name must end in `Millis`, `Micros`, `Seconds` or
// the like, or the value must be a `Duration`.
//
//   node scripts/units.mjs            all problems, and their count
//   node scripts/units.mjs packages/core
//
// It checks:
//
// - numeric constants whose name or comment mentions time, or which are computed from such constants;
// - internal declarations whose comment says that they are in milliseconds. Instants on a clock are exempt, because all
//   instants are in milliseconds, and so is the testkit, whose simulator uses only milliseconds.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { filesBelow, root, shown } from "./lib/workspace.mjs"

const wordsOf = (name) => name.split(/[_$]|(?<=[a-z\d])(?=[A-Z])/).map((word) => word.toLowerCase())

const unit = /(?:Millis|Micros|Nanos|Seconds|Minutes|Hours|Days)$|^(?:millis|micros|nanos|seconds|minutes|hours)$/
const timeWords =
  /^(?:delay|pause|period|timeout|interval|age|patience|lateness|retention|grace|wait|ttl|expiry|epoch|second|minute|hour|day|week)s?$/
const timeName = { test: (name) => wordsOf(name).some((word) => timeWords.test(word)) }
const timeComment =
  /\bin (?:monotonic )?(?:milli|micro|nano)?(?:seconds|minutes|hours|days)\b|(?:\/\*\*|\/\/|[.:]) (?:milli|micro|nano)?seconds\b/i
const instantComment =
  /\bmonotonic|\binstants?\b|\bsince (?:1970|the (?:epoch|start))|\bclock\b|\bserver time|\bbackend's time|\bwhen\b/i

const number = String.raw`-?[\d_.]+(?:e\d+)?(?:\s*[*+/-]\s*[\d_.]+|\s*\*\*\s*\d+)*`
const constant = new RegExp(String.raw`^\s*(?:export )?const (\w+)(?:: number)? = (${number})(?:,|;)?$`)
/** A constant computed only from numbers and constants with a unit. */
const derived = /^(?:export )?const (\w+) = (?:[\d_.*+\s-]*\b\w+(?:Millis|Micros|Seconds)\b)+[\d_.*+\s-]*$/
const declared =
  /^\s*(?:(?:export|private|protected|readonly|static|const|let) )*(\w+)\??(?:: number(?: \| undefined)?(?: = .*)?| = [^(]*)$/

/** The comment that ends on the line above. */
const commentAbove = (lines, at) => {
  let first = at - 1
  if (!/^\s*(?:\/\/|\/\*\*|\*)/.test(lines[first] ?? "")) return ""
  while (first > 0 && !/^\s*\/\*\*/.test(lines[first]) && /^\s*(?:\*|\/\/)/.test(lines[first - 1] + lines[first])) {
    if (/^\s*\/\//.test(lines[first]) && !/^\s*\/\//.test(lines[first - 1])) break
    first--
  }
  return lines.slice(first, at).join(" ")
}

const only = process.argv[2] ?? "packages"
const files = filesBelow(join(root, only), (name) => name.endsWith(".ts")).filter((path) => {
  const name = shown(path)
  return /^packages\/[^/]+\/src\//.test(name) && !name.includes("/suite/") && !name.endsWith(".generated.ts")
})
if (files.length === 0) {
  console.error(`there is no source under "${only}"`)
  process.exit(2)
}

const problems = []
for (const path of files) {
  const name = shown(path)
  const lines = readFileSync(path, "utf8").split("\n")
  lines.forEach((line, at) => {
    const comment = commentAbove(lines, at)
    const [, bare] = constant.exec(line) ?? []
    if (bare !== undefined && !unit.test(bare) && (timeName.test(bare) || timeComment.test(comment))) {
      problems.push(`${name}:${at + 1}: ${bare} is a time, but its name lacks the unit`)
      return
    }
    const [, product] = derived.exec(line) ?? []
    if (product !== undefined && !unit.test(product)) {
      problems.push(
        `${name}:${at + 1}: ${product} is computed from times, but its name lacks the unit`
      )
    }
    const [, field] = declared.exec(line) ?? []
    if (field === undefined || unit.test(field) || !/^packages\/(?!testkit)[^/]+\/src\/.*internal\//.test(name)) return
    if (timeComment.test(comment) && !instantComment.test(comment)) {
      problems.push(`${name}:${at + 1}: ${field} is in milliseconds, but its name lacks the unit`)
    }
  })
}
for (const problem of problems) console.error(problem)
console.log(`units: ${files.length} files, ${problems.length} problem(s)`)
process.exitCode = problems.length > 0 ? 1 : 0
