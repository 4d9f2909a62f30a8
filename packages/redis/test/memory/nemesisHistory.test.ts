/** The nemesis parses what servers print for MONITOR. */
import { assert, it } from "@effect/vitest"
import { parseMonitor } from "../nemesis/history.ts"

it.each([
  ["as Redis escapes it", `"set" "k" "say \\"a\\" \\"b\\"" "" "\\\\\\x00\\n"`, [
    "SET",
    "k",
    `say "a" "b"`,
    "",
    "\\\0\n"
  ]],
  ["with Valkey 8.1.1's plain quotes", `"set" "k" "at ["key"]" "{"a":1}"`, ["SET", "k", `at ["key"]`, `{"a":1}`]]
])("a command is read %s", (_, text, args) => {
  const found = parseMonitor("n1", `+1.000500 [0 127.0.0.1:5000] ${text}`, 1000)
  assert.deepStrictEqual(found, { at: 0.5, node: "n1", isScript: false, source: "127.0.0.1:5000", args })
})
