/**
 * CONFIG. A change of several settings is made as a whole or not at all.
 */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import { IMMUTABLE, NUMERIC, parseMemory, POLICIES } from "../config.ts"
import { globMatch } from "../glob.ts"
import { parseFlags, printFlags } from "../notifications.ts"
import { parseInteger } from "../numbers.ts"
import { fail, OK, syntaxError } from "../reply.ts"
import type { Server } from "../server.ts"

const config: Handler = ({ server }, args) => {
  const sub = args[1]!.toLowerCase()
  if (sub === "resetstat" || sub === "rewrite") {
    if (sub === "rewrite") return fail("ERR The server is running without a config file")
    server.commandsProcessed = 0
    server.expiredKeys = 0
    return OK
  }
  if (sub === "get") {
    const found: Array<string> = []
    for (const [name, value] of server.config) {
      if (!args.slice(2).some((pattern) => globMatch(pattern.toLowerCase(), name))) continue
      found.push(name, name === "notify-keyspace-events" ? printFlags(server.flags) : value)
    }
    return found
  }
  if (args.length % 2 === 1) return syntaxError()
  const seen = new Set<string>()
  for (let i = 2; i < args.length; i += 2) checkName(server, args[i]!, seen)
  const changes: Array<() => void> = []
  for (let i = 2; i < args.length; i += 2) changes.push(configChange(server, args[i]!, args[i + 1]!))
  for (const change of changes) change()
  return OK
}

const invalid = (name: string, reason: string): never =>
  fail(`ERR CONFIG SET failed (possibly related to argument '${name}') - ${reason}`)

/** Refuses what cannot be set, before any value is looked at. */
const checkName = (server: Server, original: string, seen: Set<string>): void => {
  const name = original.toLowerCase()
  if (!server.config.has(name)) {
    return fail(`ERR Unknown option or number of arguments for CONFIG SET - '${original}'`)
  }
  if (IMMUTABLE.has(name)) return invalid(original, "can't set immutable config")
  if (seen.has(name)) return invalid(original, "duplicate parameter")
  seen.add(name)
}

const configChange = (server: Server, original: string, value: string): () => void => {
  const name = original.toLowerCase()
  if (name === "notify-keyspace-events") {
    const flags = parseFlags(value)
    if (flags === undefined) return invalid(original, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
    return () => {
      server.flags = flags
    }
  }
  let stored = value
  if (name === "maxmemory") {
    const bytes = parseMemory(value)
    if (bytes === undefined) return invalid(original, "argument must be a memory value")
    stored = String(bytes)
  } else if (name === "maxmemory-policy") {
    stored = value.toLowerCase()
    if (!POLICIES.has(stored)) {
      return invalid(original, `argument(s) must be one of the following: ${Array.from(POLICIES).join(", ")}`)
    }
  } else if (NUMERIC.has(name) && parseInteger(value) === undefined) {
    return invalid(original, "argument couldn't be parsed into an integer")
  }
  return () => {
    server.config.set(name, stored)
  }
}

export const configCommands: ReadonlyArray<Command> = [
  define("config", -2, "sl", config)
]
