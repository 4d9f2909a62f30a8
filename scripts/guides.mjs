// Copies the users' guides and the examples to packages/core/docs. They are published with core because every user
// installs core.
//
//   node scripts/guides.mjs
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { filesFrom, root } from "./lib/workspace.mjs"

const guides = [
  "api",
  "choosing",
  "command-line",
  "configuration",
  "cron",
  "errors",
  "guarantees",
  "in-memory-redis",
  "kubernetes",
  "leadership",
  "migrating",
  "monitoring",
  "observability",
  "operations",
  "protocol",
  "questions",
  "requirements",
  "runbooks",
  "stream-guarantees",
  "streams",
  "data-streams",
  "testing",
  "web-service",
  "without-effect"
]

const programs = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".ts"))

const tests = ["explore-your-code", "simulate-your-code", "test-your-code", "test-your-streams"].map((name) =>
  `test/${name}.test.ts`
)

/** The published examples, with all files that they import. */
const examples = new Set([...programs, ...tests].flatMap((name) => [...filesFrom(`examples/${name}`)]))

const grafana = ["alerts.yml", "effect-simba.json"]

/** The path of a published file in packages/core/docs. */
const published = new Map([
  ["../README.md", "../README.md"],
  ...guides.map((name) => [`${name}.md`, `${name}.md`]),
  ...grafana.map((name) => [`grafana/${name}`, `grafana/${name}`]),
  ...[...examples].map((file) => [`../${file}`, file])
])

/** Turns links to unpublished files into plain text. */
const withPublishedLinks = (text) =>
  text.replace(
    /\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)/g,
    (_, words, target, anchor = "") => published.has(target) ? `[${words}](${published.get(target)}${anchor})` : words
  )

const target = join(root, "packages/core/docs")
rmSync(target, { recursive: true, force: true })
for (const file of examples) cpSync(join(root, file), join(target, file))
for (const name of grafana) cpSync(join(root, "docs/grafana", name), join(target, "grafana", name))
for (const name of guides) {
  const text = readFileSync(join(root, "docs", `${name}.md`), "utf8")
  writeFileSync(join(target, `${name}.md`), withPublishedLinks(text))
}
