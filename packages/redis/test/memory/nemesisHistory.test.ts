/** The nemesis parses what servers print for MONITOR, and rebuilds from it what the checkers read. */
import type { Checker } from "@effect-simba/testkit"
import { assert, it } from "@effect/vitest"
import { parseMonitor } from "../nemesis/history.ts"
import { type History, judge } from "../nemesis/judge.ts"

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

it("the checkers read the fields of hashes as the commands have left them", () => {
  const read: Array<string | undefined> = []
  const call = { at: 1, node: "n1", isScript: false, source: "127.0.0.1:5000", args: ["EVALSHA"] }
  const effects = [
    ["HSET", "jobs", "attempt", "1", "end", "5"],
    ["HINCRBY", "jobs", "attempt", "-1"],
    ["HINCRBY", "jobs", "runs", "2"],
    ["HDEL", "jobs", "end"],
    ["HINCRBY", "other", "runs", "1"]
  ].map((args) => ({ ...call, isScript: true, args }))
  const history: History = {
    lines: [],
    observed: [call, ...effects],
    snapshots: [],
    faults: [],
    phases: [],
    left: { keys: [], subscriptions: 0, connections: 0 }
  }
  const checker: Checker.Checker = {
    name: "fields",
    start: (view) => ({
      onEvent: () => {
        for (const field of ["attempt", "runs", "end"]) read.push(view.field("jobs", field))
        read.push(view.field("other", "runs"))
      }
    })
  }
  judge(history, { resources: [], ownerKey: (name) => name }, [checker], { data: ["jobs"], isMember: () => true })
  assert.deepStrictEqual(read, ["0", "2", undefined, undefined])
})
