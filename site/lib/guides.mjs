// The guides of the site and their order. `content.mjs` refuses a page of docs that is missing here.
export const groups = [
  { text: "Start", pages: ["index", "guides", "choosing", "examples", "requirements"] },
  { text: "Mutexes", pages: ["api", "configuration", "guarantees", "errors", "web-service", "migrating"] },
  { text: "Leadership", pages: ["leadership", "cron"] },
  { text: "Data streams", pages: ["streams"] },
  { text: "Other programs", pages: ["without-effect", "command-line", "protocol"] },
  { text: "Testing", pages: ["testing", "in-memory-redis"] },
  { text: "Operating", pages: ["operations", "kubernetes", "monitoring", "observability", "runbooks", "performance"] }
]

/** For contributors, who have the repository. */
export const leftOut = ["known-problems"]

/** The first heading of a page. */
export const titleOf = (text) => /^# (.+)$/m.exec(text)?.[1] ?? "effect-simba"
