/** Compares the entry states in docs/protocol.md with the scripts' declarations and code. */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../../../..")
const folder = join(root, "packages/redis/src/streams/internal/lua")
const read = (path: string) => readFileSync(path, "utf8")

/** Parses a diagram's arrows, such as `from ── by ──▶ to`. */
const arrows = (diagram: string) =>
  diagram.split("\n").flatMap((line) => {
    const [, from, by, to] = /^(.+) ── (.+) ──▶ (.+)$/.exec(line) ?? []
    if (from === undefined) return []
    return from.split(", ").flatMap((one) => by!.split(", ").map((name) => `${one} ${name} ${to}`))
  })

const ofEntries = arrows(
  read(join(root, "docs/protocol.md")).split("#### The states of an entry")[1]!.split("```")[1]!
)

const luaFiles = (path: string) => readdirSync(path).filter((name) => name.endsWith(".lua"))
const scripts = luaFiles(folder).map((file) => ({ name: file.replace(".lua", ""), text: read(join(folder, file)) }))
const includes = luaFiles(join(folder, "include")).map((file) => ({ file, text: read(join(folder, "include", file)) }))

/** Parses a transition in a script's head, such as `(none) -> announced`. */
const declared = (text: string) =>
  /^--- Transition: (.+)$/m.exec(text)?.[1]!.split(", ").map((one) => one.split(" -> ") as [string, string]) ?? []

/** The transition that each function in entryStates.lua makes, from the comment above it. */
const functions = new Map(
  [...includes.find(({ file }) => file === "entryStates.lua")!.text.matchAll(/^--- (\w+) {2,}(.+) -> (\w+)$/gm)].map(
    ([, name, from, to]) => [name!, { from: from!.split(", "), to: to! }]
  )
)

describe("the states of an entry", () => {
  it("match the diagram in docs/protocol.md", () => {
    const found = scripts.flatMap(({ name, text }) => declared(text).map(([from, to]) => `${from} ${name} ${to}`))
    assert.deepStrictEqual(found.sort(), ofEntries.sort())
  })

  it("change only in the functions that a script's head declares", () => {
    assert.strictEqual(functions.size, 6)
    for (const { name, text } of scripts) {
      // Announcing adds an entry
      const calls = [...functions].filter(([called]) =>
        new RegExp(`\\b${called}\\(`).test(
          called === "announceEntry" ? text.replace(/\bannounce\(/g, "announceEntry(") : text
        )
      )
      for (const [called, { from, to }] of calls) {
        assert.isTrue(declared(text).some((one) => from.includes(one[0]) && to === one[1]), `${name} calls ${called}`)
      }
      for (const [from, to] of declared(text)) {
        assert.isTrue(
          calls.some(([, one]) => one.from.includes(from) && one.to === to),
          `no function moves an entry from ${from} to ${to} in ${name}`
        )
      }
    }
  })

  it("change only in entryStates.lua", () => {
    const moves = /'(XADD|XACK|XDEL)', input\b|'(SET|DEL|PEXPIRE)', (entryLease|streamLease)\b/
    const others = [...scripts, ...includes.filter(({ file }) => file !== "entryStates.lua")]
      .flatMap((one) => one.text.split("\n").filter((line) => moves.test(line)).map((line) => line.trim()))
    assert.deepStrictEqual(others, [
      // The exceptions delete finished entries or extend the leases of owned ones
      "removed = removed + redis.call('XDEL', input, entry[1])",
      "redis.call('PEXPIRE', entryLease, lease)",
      "redis.call('PEXPIRE', streamLease, lease)"
    ])
  })
})
