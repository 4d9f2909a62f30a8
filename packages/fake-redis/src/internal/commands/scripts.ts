/**
 * EVAL and its relatives. A script is compiled once per engine and kept until SCRIPT FLUSH.
 */
import { denialInScript } from "../aclLog.ts"
import type { Command, Handler } from "../command.ts"
import { arityProblem, BLOCKED, define, describedBy } from "../command.ts"
import { Context } from "../context.ts"
import { refusalIn } from "../errorStates.ts"
import type { LuaScript } from "../lua/vm.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Fail, fail, OK } from "../reply.ts"
import { sha1 } from "../sha1.ts"
import { shape } from "../shapes.ts"

const NOSCRIPT = "NOSCRIPT No matching script. Please use EVAL."

interface Header {
  readonly body: string
  readonly readOnly: boolean
}

const header = (source: string): Header => {
  if (!source.startsWith("#!")) return { body: source, readOnly: false }
  const end = source.indexOf("\n")
  if (end < 0) return fail("ERR Invalid script shebang")
  const words = source.slice(2, end).trim().split(/ +/)
  if (words[0] !== "lua") return fail(`ERR Unexpected engine in script shebang: ${words[0] ?? ""}`)
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
  // The first line stays as an empty one, so that errors name the right line.
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

const UNKNOWN = new Fail("ERR Unknown Redis command called from script")
const ARITY = new Fail("ERR Wrong number of args calling Redis command from script")
const FORBIDDEN = new Fail("ERR This Redis command is not allowed from script")
const READ_ONLY = new Fail("ERR Write commands are not allowed from read-only scripts.")

const caller = (context: Context, readOnly: boolean) => {
  const { server } = context
  let inner = new Context(server, context.client, true, true)
  return (args: ReadonlyArray<string>, protocol: 2 | 3): Value => {
    const command = server.commands.get(args[0]!.toLowerCase())
    if (command === undefined) return UNKNOWN
    const spec = describedBy(command, args)
    if (typeof spec === "string") return UNKNOWN
    if (arityProblem(spec, args) !== undefined) return ARITY
    if (spec.flags.has("noscript")) return FORBIDDEN
    const denial = context.client.user?.denies(spec, args)
    if (denial !== undefined) {
      server.aclLog.add(server, context.client, denial, "lua")
      return new Fail(denialInScript(denial))
    }
    if (readOnly && (spec.flags.has("write") || spec.flags.has("may_replicate"))) return READ_ONLY
    const refusal = refusalIn(server.errorState, server.config, spec)
    if (refusal !== undefined) return new Fail(refusal)
    const value = server.call(inner, command, spec, args)
    if (context.client.db !== inner.db.index) inner = new Context(server, context.client, true, true)
    const reply = value === BLOCKED ? null : value
    return protocol === 3 ? shape(3, args, reply) : reply
  }
}

const evaluate = (
  context: Context,
  args: ReadonlyArray<string>,
  script: () => readonly [string, LuaScript],
  readOnly: boolean
): Value => {
  const count = integer(args[2]!)
  if (count > args.length - 3) return fail("ERR Number of keys can't be greater than number of args")
  if (count < 0) return fail("ERR Number of keys can't be negative")
  const [sha, compiled] = script()
  const { db } = context.client
  const value = compiled.run(
    args.slice(3, 3 + count),
    args.slice(3 + count),
    { call: caller(context, readOnly || compiled.readOnly === true), random: context.server.options.random },
    sha
  )
  // SELECT inside a script ends with it.
  context.client.db = db
  return value
}

/** Names of sources seen, so that neither EVAL nor SCRIPT LOAD hashes the same text again and again. */
const names = new Map<string, string>()

const nameOf = (source: string): string => {
  const known = names.get(source)
  if (known !== undefined) return known
  const sha = sha1(source)
  if (names.size > 1000) names.clear()
  names.set(source, sha)
  return sha
}

const evalSource = (readOnly: boolean) => (context: Context, args: ReadonlyArray<string>): Value =>
  evaluate(context, args, () => {
    const sha = nameOf(args[1]!)
    return [sha, load(context, args[1]!, sha)]
  }, readOnly)

const evalSha = (readOnly: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
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
      context.server.flushScripts()
      return OK
    case "kill":
      return fail("NOTBUSY No scripts in execution right now.")
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
