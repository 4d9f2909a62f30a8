// Writes the guides and examples that are published, packages/core/docs: those for users, in a package that all of them
// have.
//
//   node scripts/guides.mjs
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./lib/workspace.mjs"

const guides = [
  "api",
  "command-line",
  "configuration",
  "guarantees",
  "in-memory-redis",
  "leadership",
  "monitoring",
  "operations",
  "protocol",
  "requirements",
  "streams",
  "testing",
  "without-effect"
]

const examples = ["mutex", "orders", "scheduled-jobs", "service", "with-lock"].map((name) => `${name}.ts`)

/** The target of each link to a published file. */
const published = new Map([
  ["../README.md", "../README.md"],
  ...guides.map((name) => [`${name}.md`, `${name}.md`]),
  ...examples.map((name) => [`../examples/${name}`, `examples/${name}`])
])

/** A link to an unpublished file would lead nowhere: its text stays. */
const withPublishedLinks = (text) =>
  text.replace(
    /\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)/g,
    (_, words, target, anchor = "") => published.has(target) ? `[${words}](${published.get(target)}${anchor})` : words
  )

const target = join(root, "packages/core/docs")
rmSync(target, { recursive: true, force: true })
mkdirSync(join(target, "examples"), { recursive: true })
for (const name of guides) {
  const text = readFileSync(join(root, "docs", `${name}.md`), "utf8")
  writeFileSync(join(target, `${name}.md`), withPublishedLinks(text))
}
for (const name of examples) copyFileSync(join(root, "examples", name), join(target, "examples", name))
