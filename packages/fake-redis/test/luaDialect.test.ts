import { assert, describe, it } from "@effect/vitest"
import { makeFixture } from "./differential/fixture.ts"

const evaluate = (source: string, ...argv: ReadonlyArray<string>): unknown => {
  const { peer } = makeFixture()
  return peer().run("EVAL", source, "0", ...argv)
}

const rows: ReadonlyArray<readonly [source: string, reply: unknown]> = [
  ["return tostring(10/2)", "5"],
  ["return 'a' .. 5.0", "a5"],
  ["return tonumber('1763678096') * 1000", 1763678096000],
  ["return tostring(1763678096123456)", "1.7636780961235e+15"],
  ["return string.format('%.0f', 1763678096123456)", "1763678096123456"],
  ["return string.format('%d', 1763678096000)", "1763678096000"],
  ["return string.format('%5d|%-5d|%05d|%x', -1.5, 3e9, -7, -1)", "   -1|3000000000|-0007|ffffffffffffffff"],
  ["return type(unpack) .. type(table.unpack)", "functionnil"],
  ["return 3.99", 3],
  ["return -3.99", -3],
  ["return 0/0", Number(-(2n ** 63n))],
  ["return {1, 2, nil, 4}", [1, 2]],
  ["return {true, false, 'x'}", [1, null, "x"]],
  ["return redis.call('ping')", "PONG"],
  ["return redis.call('ping').ok", "PONG"],
  ["return tostring(redis.call('get', 'none'))", "false"],
  ["return type(redis.call('time')[1])", "string"],
  ["redis.call('set', 'k', 3.7) return redis.call('get', 'k')", "3.7000000000000002"],
  ["redis.call('set', 'k', 1763678096123456) return redis.call('get', 'k')", "1763678096123456"],
  ["redis.call('set', 'k', 'v', 'px', 890) return '@@' .. redis.call('pttl', 'k')", "@@890"],
  ["return select(2, pcall(redis.call, 'NOSUCH'))", "ERR Unknown Redis command called from script"],
  ["return redis.pcall('NOSUCH').err", "ERR Unknown Redis command called from script"],
  ["return redis.error_reply('abc')", "-ERR abc"],
  ["return redis.error_reply('-ABC def')", "-ABC def"],
  ["return redis.status_reply('fine')", "fine"],
  ["return {err = 'BAD thing'}", "-BAD thing"],
  ["return tostring(os) ", /nonexistent global variable 'os'/],
  [
    "return x",
    /^-ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: [0-9a-f]{40}, on @user_script:1\.$/
  ],
  ["x = 1", /^-ERR user_script:1: Attempt to modify a readonly table script: /],
  ["redis.foo = 1", /^-ERR user_script:1: Attempt to modify a readonly table script: /],
  ["rawset(_G, 'x', 1)", /^-ERR Attempt to modify a readonly table script: /],
  ["\n\nerror('boom')", /^-ERR user_script:3: boom script: [0-9a-f]{40}, on @user_script:3\.$/],
  ["error({err = 'MY boom'})", /^-MY boom script: /],
  ["if", "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'"],
  ["return redis.call('set', 'k')", /^-ERR Wrong number of args calling Redis command from script script: /],
  ["return redis.call('multi')", /^-ERR This Redis command is not allowed from script script: /],
  ["return redis.call('blpop', 'k', 0)", /^-ERR This Redis command is not allowed from script script: /],
  ["return cjson.encode({1, 2.5, {}, true, cjson.null, 'é/'})", "[1,2.5,{},true,null,\"é\\/\"]"],
  ["return cjson.encode({[1] = 1, [20] = 2})", /Cannot serialise table: excessively sparse array/],
  ["return cjson.decode('{\"a\":[1,{\"b\":null}]}').a[1]", 1],
  ["return tostring(cjson.decode('[null]')[1] == cjson.null)", "true"],
  ["return cjson.decode('[1,]')", /Expected value but found T_ARR_END at character 4/],
  ["return cjson.decode('[\"\\\\udc00\"]')", /Expected value but found invalid unicode escape code at character 3/],
  ["return cjson.decode('\"a\\tb\"')", "a\tb"],
  ["return bit.tohex(bit.bxor(bit.lshift(1, 31), 1))", "80000001"],
  ["return ('a').upper == string.upper and ('a').err == nil", 1],
  ["return getmetatable('').__index == string", 1],
  ["return redis.sha1hex('a')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"],
  ["return #'é'", 2]
]

describe("the Lua dialect of Redis 7.0", () => {
  for (const [source, expected] of rows) {
    it(source.trim(), () => {
      const reply = evaluate(source)
      if (expected instanceof RegExp) assert.match(String(reply), expected)
      else assert.deepStrictEqual(reply, expected)
    })
  }

  it("kills a script that never ends", { tags: ["long"] }, () => {
    assert.match(String(evaluate("while true do end")), /Script killed by the engine/)
  })

  it("a script does not see the previous script's keys and arguments", () => {
    const { peer } = makeFixture()
    const { run } = peer()
    run("EVAL", "return KEYS[1]", "1", "a", "b")
    assert.deepStrictEqual(run("EVAL", "return {#KEYS, #ARGV}", "0"), [0, 0])
  })

  it("a script cannot change what later scripts share", () => {
    const { peer } = makeFixture()
    const { run } = peer()
    for (const source of ["getmetatable('').__index = nil", "rawset(getmetatable(''), '__index', nil)"]) {
      assert.match(String(run("EVAL", source, "0")), /Attempt to modify a readonly table/)
      assert.strictEqual(run("EVAL", "return ('a'):upper()", "0"), "A")
    }
    assert.match(String(run("EVAL", "rawset(getmetatable(_G), 'x', 1)", "0")), /Attempt to modify a readonly table/)
  })

  it("runs a script that has been evicted from the cache of compiled scripts", () => {
    const { peer } = makeFixture()
    const { run } = peer()
    const sha = String(run("SCRIPT", "LOAD", "return KEYS[1]"))
    for (let i = 0; i < 1100; i++) assert.strictEqual(run("EVAL", `return ${i}`, "0"), i)
    assert.strictEqual(run("EVALSHA", sha, "1", "k"), "k")
    assert.strictEqual(run("EVAL", "return 0", "0"), 0)
  })

  it("runs scripts by their hash until they are flushed", () => {
    const { engine, peer } = makeFixture()
    const { run } = peer()
    const sha = String(run("SCRIPT", "LOAD", "return 7"))
    assert.strictEqual(run("EVALSHA", sha, "0"), 7)
    engine.flushScripts()
    assert.strictEqual(run("EVALSHA", sha, "0"), "-NOSCRIPT No matching script. Please use EVAL.")
    assert.match(String(run("EVAL_RO", "return redis.call('set', 'a', 'b')", "0")), /Write commands are not allowed/)
  })
})
