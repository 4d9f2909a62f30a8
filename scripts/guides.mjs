// Writes the guides that are published, packages/core/docs/*.md: those for users, in a package that all of them have.
//
//   node scripts/guides.mjs
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./lib/workspace.mjs"

const guides = [
  "api",
  "configuration",
  "guarantees",
  "in-memory-redis",
  "leadership",
  "monitoring",
  "operations",
  "protocol",
  "requirements",
  "streams",
  "testing"
]

const published = new Set(["../README.md", ...guides.map((name) => `${name}.md`)])

/** A link to what is not published would lead nowhere: its text stays. */
const withoutDeadLinks = (text) =>
  text.replace(/\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)/g, (link, words, target) => published.has(target) ? link : words)

const target = join(root, "packages/core/docs")
rmSync(target, { recursive: true, force: true })
mkdirSync(target)
for (const name of guides) {
  const text = readFileSync(join(root, "docs", `${name}.md`), "utf8")
  writeFileSync(join(target, `${name}.md`), withoutDeadLinks(text))
}
