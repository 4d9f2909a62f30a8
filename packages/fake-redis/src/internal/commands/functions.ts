/** FUNCTION and FCALL, for libraries of Lua functions that are stored on the server. */
import { killBusy } from "../busyScript.ts"
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import { globMatch } from "../glob.ts"
import type { Library } from "../library.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Dictionary, fail, Members, OK, Status } from "../reply.ts"
import type { Server } from "../server.ts"
import { runScript } from "./scriptCalls.ts"

/** The marker at the start of a FUNCTION DUMP payload, whose format differs from Redis's. */
const MARK = "fake-redis-functions-1:"

const nameIn = (code: string): string => {
  const end = code.indexOf("\n")
  if (!code.startsWith("#!")) return fail("ERR Missing library metadata")
  if (end < 0) return fail("ERR Invalid library metadata")
  const [engine = "", ...options] = code.slice(2, end).trim().split(/ +/)
  let name: string | undefined
  for (const option of options) {
    if (!option.toLowerCase().startsWith("name=")) return fail(`ERR Invalid metadata value given: ${option}`)
    if (name !== undefined) return fail("ERR Invalid metadata value, name argument was given multiple times")
    name = option.slice(5)
  }
  if (name === undefined) return fail("ERR Library name was not given")
  if (!/^\w+$/.test(name)) {
    return fail(
      "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
    )
  }
  return engine.toLowerCase() === "lua" ? name : fail(`ERR Engine '${engine}' not found`)
}

const load = (server: Server, code: string, replace: boolean): string => {
  const name = nameIn(code)
  if (!replace && server.libraries.has(name)) return fail(`ERR Library '${name}' already exists`)
  const { lua } = server.options
  if (lua === undefined) return fail("ERR this server was made without a Lua VM")
  // Blank the shebang line but keep its line break, so that errors report the right line number
  const functions = lua.load(code.slice(code.indexOf("\n")))
  if (typeof functions === "string") return fail(`ERR ${functions}`)
  for (const other of server.libraries.values()) {
    if (other.name === name) continue
    const taken = functions.find((one) => other.functions.some((its) => its.name === one.name))
    if (taken !== undefined) return fail(`ERR Function ${taken.name} already exists`)
  }
  server.libraries.set(name, { name, code, functions })
  return name
}

const describe = ({ code, functions, name }: Library, withCode: boolean): Value =>
  new Dictionary([
    "library_name",
    name,
    "engine",
    "LUA",
    "functions",
    functions.map((one) =>
      new Dictionary([
        "name",
        one.name,
        "description",
        one.description ?? null,
        "flags",
        new Members(one.flags.map((flag) => new Status(flag)))
      ])
    ),
    ...withCode ? ["library_code", code] : []
  ])

const list = ({ libraries }: Server, args: ReadonlyArray<string>): Value => {
  let withCode = false
  let pattern: string | undefined
  for (let at = 2; at < args.length; at++) {
    const option = args[at]!.toLowerCase()
    if (option === "withcode" && !withCode) withCode = true
    else if (option === "libraryname" && pattern === undefined) {
      pattern = args[++at] ?? fail("ERR library name argument was not given")
    } else return fail(`ERR Unknown argument ${args[at]!}`)
  }
  return Array.from(libraries.values()).filter(({ name }) => pattern === undefined || globMatch(pattern, name))
    .map((library) => describe(library, withCode))
}

const restore = (server: Server, payload: string, policy: string): Value => {
  if (!["append", "flush", "replace"].includes(policy)) {
    return fail("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
  }
  if (!payload.startsWith(MARK)) return fail("ERR DUMP payload version or checksum are wrong")
  const before = new Map(server.libraries)
  if (policy === "flush") server.libraries.clear()
  try {
    for (const code of JSON.parse(payload.slice(MARK.length)) as ReadonlyArray<string>) {
      load(server, code, policy === "replace")
    }
  } catch (error) {
    server.libraries.clear()
    for (const [name, library] of before) server.libraries.set(name, library)
    throw error
  }
  return OK
}

const running = ({ busy, options }: Server): Value =>
  busy?.kind !== "function" ? null : new Dictionary([
    "name",
    busy.name,
    "command",
    busy.args,
    "duration_ms",
    Math.round((options.stopwatch?.() ?? 0) - busy.startedAt)
  ])

const functionCommand: Handler = ({ server }, args) => {
  const { libraries } = server
  switch (args[1]!.toLowerCase()) {
    case "load": {
      const replace = args[2]!.toLowerCase() === "replace" && args.length > 3
      if (args.length > (replace ? 4 : 3)) return fail(`ERR Unknown option given: ${args[2]!}`)
      return load(server, args.at(-1)!, replace)
    }
    case "delete":
      return libraries.delete(args[2]!) ? OK : fail("ERR Library not found")
    case "flush":
      if (args.length > 3) {
        return fail(`ERR unknown subcommand or wrong number of arguments for '${args[1]!}'. Try FUNCTION HELP.`)
      }
      if (args[2] !== undefined && !/^(?:sync|async)$/i.test(args[2])) {
        return fail("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
      }
      libraries.clear()
      return OK
    case "list":
      return list(server, args)
    case "dump":
      return MARK + JSON.stringify(Array.from(libraries.values(), ({ code }) => code))
    case "restore":
      return restore(server, args[2]!, args[3]?.toLowerCase() ?? "append")
    case "stats": {
      const functions = Array.from(libraries.values()).reduce((count, library) => count + library.functions.length, 0)
      const engine = new Dictionary(["libraries_count", libraries.size, "functions_count", functions])
      return new Dictionary(["running_script", running(server), "engines", new Dictionary(["LUA", engine])])
    }
    default: // This must be KILL, because HELP and unknown subcommands are handled earlier
      return killBusy(server.busy, "function")
  }
}

const call = (readOnly: boolean): Handler => (context, args) => {
  const { server } = context
  const found = Array.from(server.libraries.values()).flatMap(({ functions }) => functions)
    .find(({ name }) => name === args[1])
  if (found === undefined) return fail("ERR Function not found")
  const count = integer(args[2]!, "ERR Bad number of keys provided")
  if (count > args.length - 3) return fail("ERR Number of keys can't be greater than number of args")
  if (count < 0) return fail("ERR Number of keys can't be negative")
  const isSafe = found.flags.includes("no-writes")
  if (readOnly && !isSafe) return fail("ERR Can not execute a script with write flag using *_ro command.")
  return runScript(context, {
    kind: "function",
    name: found.name,
    args,
    readOnly: isSafe,
    run: (host) => found.run(args.slice(3, 3 + count), args.slice(3 + count), host)
  })
}

export const functionCommands: ReadonlyArray<Command> = [
  define("function", functionCommand),
  define("fcall", call(false)),
  define("fcall_ro", call(true))
]
