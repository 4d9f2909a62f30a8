import { assert, describe, it } from "@effect/vitest"
import { makeFixture } from "./differential/fixture.ts"

/** Differences from redis-server 7.0.15 that the differential run has found: the last command and its reply. */
const rows: ReadonlyArray<readonly [name: string, commands: ReadonlyArray<ReadonlyArray<string>>, reply: unknown]> = [
  ["an empty exclusive score bound is zero", [["ZADD", "z", "1", "a"], ["ZCOUNT", "z", "(", "2"]], 1],
  ["a small sorted set has no negative zero", [["ZADD", "z", "-0", "a"], ["ZSCORE", "z", "a"]], "0"],
  ["stream ids may have leading zeros", [["XADD", "x", "7-1", "a", "b"], ["XDEL", "x", "007-1"]], 1],
  [
    "bounds are refused before the type",
    [["SET", "z", "1"], ["ZRANGEBYSCORE", "z", "abc", "1"]],
    "-ERR min or max is not a float"
  ],
  [
    "EXEC with arguments discards",
    [["MULTI"], ["EXEC", "x"]],
    "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"
  ],
  [
    "a subcommand is checked before it is queued",
    [["MULTI"], ["SCRIPT", "nope"]],
    "-ERR unknown subcommand 'nope'. Try SCRIPT HELP."
  ],
  ["counters are 64-bit", [["SET", "n", "9223372036854775806"], ["INCR", "n"], ["GET", "n"]], "9223372036854775807"],
  [
    "counters overflow",
    [["SET", "n", "9223372036854775807"], ["INCR", "n"]],
    "-ERR increment or decrement would overflow"
  ],
  ["floats are added with 80 bits", [["SET", "f", "10.5"], ["INCRBYFLOAT", "f", "0.1"]], "10.6"],
  ["floats may be hexadecimal", [["INCRBYFLOAT", "f", "0x1p3"]], "8"],
  [
    "a float beyond range is none",
    [["SET", "f", "1e5000"], ["INCRBYFLOAT", "f", "1"]],
    "-ERR value is not a valid float"
  ],
  [
    "XADD checks the id before the fields",
    [["XADD", "x", "abc", "a"]],
    "-ERR wrong number of arguments for 'xadd' command"
  ],
  ["reading nothing leaves no consumer", [
    ["XADD", "x", "1-1", "a", "b"],
    ["XGROUP", "CREATE", "x", "g", "0"],
    ["XDEL", "x", "1-1"],
    ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">"],
    ["XINFO", "CONSUMERS", "x", "g"]
  ], []],
  ["a tombstone before the first entry does not blur the lag", [
    ["XADD", "x", "5-1", "a", "b"],
    ["XGROUP", "CREATE", "x", "g", "0", "ENTRIESREAD", "0"],
    ["XSETID", "x", "9", "ENTRIESADDED", "100", "MAXDELETEDID", "1"],
    ["XINFO", "GROUPS", "x"]
  ], [["name", "g", "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", 0, "lag", 100]]],
  [
    "the database of MOVE is a C int",
    [["SET", "k", "1"], ["MOVE", "k", "9007199254740993"]],
    "-ERR value is out of range, value must between -2147483648 and 2147483647"
  ],
  ["LIMIT skips before it looks at the far bound", [
    ["ZADD", "z", "1", "b", "2", "a", "3", "c"],
    ["ZRANGEBYLEX", "z", "[b", "[c", "LIMIT", "1", "1"]
  ], ["a"]],
  [
    "an unknown command is quoted with its arguments",
    [["FOO", "a", "b"]],
    "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' "
  ]
]

describe("found by the differential run", () => {
  for (const [name, commands, expected] of rows) {
    it(name, () => {
      const { peer } = makeFixture()
      const { run } = peer()
      let reply: unknown
      for (const args of commands) reply = run(...args)
      assert.deepStrictEqual(reply, expected)
    })
  }
})
