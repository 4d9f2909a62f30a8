import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { commands } from "../src/internal/commandTable.ts"

/** The files that compare commands with a redis-server. */
const sources = [
  "templates.ts",
  "generator.ts",
  "scripts.ts",
  "administration.test.ts",
  "corners.test.ts",
  "tracking.test.ts",
  "../foreign/bytes.test.ts"
].map((name) => readFileSync(new URL(`./differential/${name}`, import.meta.url), "utf8"))

/** Commands whose replies are random or depend on when the server started. */
const incomparable = ["lastsave", "randomkey"]

it("every command is compared with a redis-server, or excluded with a reason", () => {
  const words = new Set(sources.join("\n").replaceAll(/[<|>]/g, " ").match(/[A-Z][A-Z_]+/g))
  const missing = Array.from(commands.keys()).filter((name) => !words.has(name.toUpperCase()))
  assert.deepStrictEqual(missing.sort(), incomparable)
})
