// The site's sidebar: groups of guides, in order.
const named = [
  { text: "Start", pages: ["start", "playground", "choosing", "examples", "questions", "requirements", "guides"] },
  { text: "Mutexes", pages: ["api", "web-service", "configuration", "guarantees", "errors", "migrating"] },
  { text: "Leadership", pages: ["leadership", "cron"] },
  { text: "Data streams", pages: ["streams", "data-streams", "stream-guarantees"] },
  { text: "Other programs", pages: ["without-effect", "command-line", "protocol"] },
  { text: "Testing", pages: ["testing", "how-it-is-tested", "in-memory-redis"] },
  { text: "Operating", pages: ["operations", "kubernetes", "monitoring", "observability", "runbooks", "performance"] }
]

/** The groups in the sidebar. Pages that do not belong to a group are listed last, under "More". */
export const groupsOf = (pages) => {
  const known = new Set(named.flatMap((group) => group.pages))
  const others = pages.filter((page) => !known.has(page))
  return others.length === 0 ? named : [...named, { text: "More", pages: others }]
}

/** Pages for contributors. They are not part of the site. */
export const leftOut = ["known-problems"]

/** Returns the first heading of a page. */
export const titleOf = (text) => /^# (.+)$/m.exec(text)?.[1] ?? "effect-simba"
