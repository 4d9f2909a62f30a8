/**
 * Decodes JSON with `cjson.decode` on the fake and on a redis-server, and compares the results and the error messages.
 * Most of the texts are malformed, or accepted by `cjson` although they are not JSON.
 */
import { assert, it } from "@effect/vitest"
import { bothServers } from "./alike.ts"
import { toPlain } from "./comparison.ts"
import { makeDraw } from "./draw.ts"
import { open } from "./resp.ts"

const { where } = bothServers()

/** Prints a decoded value's type and content, because a reply drops fractions, null and object keys. */
const script = `
-- On Redis, these settings outlast a script
cjson.decode_invalid_numbers(not ARGV[2])
cjson.decode_max_depth(1000)
local function print(value)
  if type(value) == 'table' then
    local parts = {}
    for key, item in pairs(value) do
      parts[#parts + 1] = type(key) .. ' ' .. tostring(key) .. '=' .. print(item)
    end
    table.sort(parts)
    return '{' .. table.concat(parts, ', ') .. '}'
  elseif value == cjson.null then
    return 'null'
  elseif value ~= value then
    return 'nan'
  elseif type(value) == 'number' then
    return string.format('%.17g', value)
  end
  -- Bytes as numbers, because the reply need not be valid UTF-8
  return type(value) .. ' ' .. table.concat({ string.byte(tostring(value), 1, -1) }, ' ')
end
return print(cjson.decode(ARGV[1]))`

const table: ReadonlyArray<string> = [
  String.raw`{"a\q":1}`,
  String.raw`{"a":"\q"}`,
  "[\"\\",
  "[\"\\u",
  String.raw`["\u12g4"]`,
  String.raw`["\u00e9\u20ac\u0000\u0041"]`,
  String.raw`["\ud83d\ude00"]`,
  String.raw`["\ud800x"]`,
  String.raw`["\ud800"]`,
  String.raw`["\udc00"]`,
  String.raw`["\ud800\u0041"]`,
  String.raw`["\ud800\ud800"]`,
  String.raw`["\ud800\u12"]`,
  String.raw`{"\udc00":1}`,
  String.raw`["\"\\\/\b\f\n\r\t"]`,
  String.raw`["\B"]`,
  "[\"a\" \"b",
  "[\"a\" \"b\"]",
  "[\"a\" b]",
  "\"abc",
  "\"",
  "\"\u0001\n\t\u001f\u007f\"",
  "{\"a\nb\":1}",
  "\"é€\"",
  "",
  " ",
  "\u000b1",
  "1\u000b",
  "\u0000",
  "\u0000a",
  "a\u0000",
  " \u0000",
  "12\u0000x",
  "[1\u0000]",
  "\"ab\u0000c\"",
  "{",
  "{}",
  "{}}",
  "{,}",
  "{1:2}",
  "{\"a\"}",
  "{\"a\" 1}",
  "{\"a\":}",
  "{\"a\":1,}",
  "{\"a\":1 \"b\":2}",
  "{\"a\":1,\"a\":2}",
  "{\"a\":1]",
  "{\"a\":1",
  "{nope",
  "[",
  "[]",
  "[]]",
  "[,]",
  "[1,]",
  "[1,,2]",
  "[1 2]",
  "[1}",
  "[1",
  "[1 x",
  "[null,true,false,null]",
  "nul",
  "nullx",
  "truefalse",
  "True",
  ":",
  "1 2",
  "'a'",
  "// a",
  "-",
  "--1",
  "-x",
  "+",
  "+1",
  "+x",
  ".5",
  "-.5",
  "1.",
  "1.5.5",
  "1e",
  "1e5",
  "1E+2",
  "1e-400",
  "1e400",
  "01",
  "-01",
  "00x1",
  "0x10",
  "-0x10",
  "+0x1F",
  "0x",
  "0xg",
  "0x1.8p3",
  "0x.8",
  "0xap-1",
  "0x1p",
  "0x1fffffffffffff",
  "inf",
  "-inf",
  "+Infinity",
  "infinit",
  "in",
  "-in",
  "nan",
  "NaN",
  "-nan",
  "nan(1)",
  "nan(",
  "na",
  "9007199254740993",
  "0.1",
  "-0"
]

const commands = [
  ...table.flatMap((text) => [["EVAL", script, "0", text], ["EVAL", script, "0", text, "valid numbers only"]]),
  ...["", "nil", "{}", "true", "1.5", "'1', '2'", "print"].map((args) => ["EVAL", `return cjson.decode(${args})`, "0"]),
  ["EVAL", "cjson.decode_max_depth(2) return cjson.decode('[{\"a\":{}}]')", "0"],
  ["EVAL", "cjson.decode_max_depth(2) return cjson.decode('[[[1]]]')", "0"],
  ["EVAL", "cjson.decode_max_depth(2) return #cjson.decode('[[[1]],[]]')", "0"],
  ["EVAL", "cjson.decode_max_depth(2) return #cjson.decode('[[1],[2],[{}]]')", "0"]
]

/** Random texts made of the characters and words that matter to the decoder. */
const randomTexts = (): ReadonlyArray<string> => {
  const draw = makeDraw(11)
  const parts = [
    ..."{}[]:,\"\"\"\\ \n\u0001+-.0123eExXpinfu",
    ..."{}[]:,",
    "true",
    "false",
    "null",
    "nan",
    "inf",
    "\"a\"",
    "\"b\":",
    "[1,",
    "\\u00e9",
    "\\ud83d",
    "\\ude00",
    "\\n",
    "0x1",
    "1e5"
  ]
  const some = () =>
    Array.from({ length: 1 + Math.floor(draw() * 6) }, () => parts[Math.floor(draw() * parts.length)]).join("")
  const around = [["", ""], ["[", "]"], ["{\"k\":", "}"], ["\"", "\""], ["[\"", "\"]"], ["{\"", "\":1}"]]
  return Array.from({ length: 4000 }, (_, at) => {
    const [open = "", close = ""] = around[at % around.length]!
    return open + some() + close
  })
}

/** Runs commands on both servers, and compares the replies one by one. */
const compare = async (commands: ReadonlyArray<ReadonlyArray<string>>) => {
  const replies: Array<ReadonlyArray<unknown>> = []
  for (const at of [where().real.path, where().fake.port]) {
    const connection = await open(at)
    replies.push((await connection.send(commands)).map(toPlain))
    connection.close()
  }
  const [theirs, own] = replies as [ReadonlyArray<unknown>, ReadonlyArray<unknown>]
  commands.forEach((command, at) =>
    assert.deepStrictEqual(own[at], theirs[at], JSON.stringify(command.slice(command[1] === script ? 3 : 1)))
  )
  return theirs
}

it("both servers decode and reject the same JSON, with the same messages", () => compare(commands))

it("both servers decode and reject the same random texts", async () => {
  const replies = await compare(randomTexts().map((text) => ["EVAL", script, "0", text]))
  assert.isAbove(replies.filter((reply) => typeof reply === "string").length, 200)
})
