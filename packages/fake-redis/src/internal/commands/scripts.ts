/** EVAL, EVALSHA and SCRIPT. Each script is compiled once and kept until SCRIPT FLUSH. */
import { killBusy } from "../busyScript.ts"
import type { BLOCKED, Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { LuaScript } from "../lua/script.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, OK } from "../reply.ts"
import { sha1 } from "../sha1.ts"
import { runScript } from "./scriptCalls.ts"

const NOSCRIPT = "NOSCRIPT No matching script. Please use EVAL."

interface Header {
  readonly body: string
  readonly readOnly: boolean
}

const header = (source: string): Header => {
  if (!source.startsWith("#!")) return { body: source, readOnly: false }
  const end = source.indexOf("\n")
  if (end < 0) return fail("ERR Invalid script shebang")
  const words = source.slice(0, end).trim().split(/ +/)
  if (words[0] !== "#!lua") return fail(`ERR Unexpected engine in script shebang: ${words[0]!}`)
  let readOnly = false
  for (const word of words.slice(1)) {
    if (!word.startsWith("flags=")) return fail(`ERR Unknown lua shebang option: ${word}`)
    for (const flag of word.slice(6).split(",").filter((text) => text !== "")) {
      if (flag === "no-writes") readOnly = true
      else if (!["allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"].includes(flag)) {
        return fail(`ERR Unexpected flag in script shebang: ${flag}`)
      }
    }
  }
  // Blank the shebang line but keep its line break, so that errors report the right line number.
  return { body: source.slice(end), readOnly }
}

const load = (context: Context, source: string, sha = sha1(source)): LuaScript => {
  const { server } = context
  const known = server.scripts.get(sha)
  if (known !== undefined) return known
  const { lua } = server.options
  if (lua === undefined) return fail("ERR this server was made without a Lua VM")
  const { body, readOnly } = header(source)
  const compiled = lua.compile(body)
  if (typeof compiled === "string") return fail(`ERR Error compiling script (new function): ${compiled}`)
  const script = readOnly ? { ...compiled, readOnly } : compiled
  server.scripts.set(sha, script)
  return script
}

const evaluate = (
  context: Context,
  args: ReadonlyArray<string>,
  script: () => readonly [string, LuaScript],
  readOnly: boolean
): Value | typeof BLOCKED => {
  const count = integer(args[2]!)
  if (count > args.length - 3) return fail("ERR Number of keys can't be greater than number of args")
  if (count < 0) return fail("ERR Number of keys can't be negative")
  const [sha, compiled] = script()
  return runScript(context, {
    kind: "script",
    name: sha,
    args,
    readOnly: readOnly || compiled.readOnly === true,
    run: (host) => compiled.run(args.slice(3, 3 + count), args.slice(3 + count), host, sha)
  })
}

/** SHA-1 digests by source, so that EVAL and SCRIPT LOAD do not hash the same text repeatedly. */
const names = new Map<string, string>()

const nameOf = (source: string): string => {
  const known = names.get(source)
  if (known !== undefined) return known
  const sha = sha1(source)
  if (names.size > 1000) names.clear()
  names.set(source, sha)
  return sha
}

const evalSource = (readOnly: boolean): Handler => (context, args) =>
  evaluate(context, args, () => {
    const sha = nameOf(args[1]!)
    return [sha, load(context, args[1]!, sha)]
  }, readOnly)

const evalSha = (readOnly: boolean): Handler => (context, args) => {
  const sha = args[1]!.toLowerCase()
  const known = context.server.scripts.get(sha)
  if (args[1]!.length !== 40) return fail(NOSCRIPT)
  return evaluate(context, args, () => known === undefined ? fail(NOSCRIPT) : [sha, known], readOnly)
}

const script: Handler = (context, args) => {
  const sub = args[1]!.toLowerCase()
  switch (sub) {
    case "load": {
      const sha = nameOf(args[2]!)
      load(context, args[2]!, sha)
      return sha
    }
    case "exists":
      return args.slice(2).map((sha) => context.server.scripts.has(sha.toLowerCase()) ? 1 : 0)
    case "flush":
      if (args.length > 3) {
        return fail("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
      }
      if (args[2] !== undefined && !/^(?:sync|async)$/i.test(args[2])) {
        return fail("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
      }
      context.server.scripts.clear()
      return OK
    case "kill":
      return killBusy(context.server.busy, "script")
    default:
      return OK
  }
}

export const scriptCommands: ReadonlyArray<Command> = [
  define("eval", evalSource(false)),
  define("eval_ro", evalSource(true)),
  define("evalsha", evalSha(false)),
  define("evalsha_ro", evalSha(true)),
  define("script", script)
]
