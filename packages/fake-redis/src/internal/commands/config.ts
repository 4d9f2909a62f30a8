/** CONFIG subcommands. If CONFIG SET rejects one setting, it changes none of them. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import { globMatch } from "../glob.ts"
import { parseFlags, printFlags } from "../notifications.ts"
import { fail, OK, syntaxError } from "../reply.ts"
import type { Server } from "../server.ts"

/** The only setting that the server stores as bit flags. */
const EVENTS = "notify-keyspace-events"

const config: Handler = ({ server }, args) => {
  const sub = args[1]!.toLowerCase()
  if (sub === "resetstat" || sub === "rewrite") {
    if (sub === "rewrite") return fail("ERR The server is running without a config file")
    server.commandsProcessed = 0
    server.expiredKeys = 0
    server.statistics.reset()
    return OK
  }
  if (sub === "get") {
    const patterns = args.slice(2).map((pattern) => pattern.toLowerCase())
    const asWritten = (name: string) => patterns.includes(name) ? args[2 + patterns.indexOf(name)]! : name
    return [[EVENTS, printFlags(server.flags)] as const, ...server.config.entries()]
      .filter(([name]) => patterns.some((pattern) => globMatch(pattern, name)))
      .flatMap(([name, value]) => [asWritten(name), value])
  }
  if (args.length % 2 === 1) return syntaxError()
  const names = new Set<string>()
  for (let i = 2; i < args.length; i += 2) checkName(server, args[i]!, names)
  const changes: Array<() => void> = []
  for (let i = 2; i < args.length; i += 2) changes.push(configChange(server, args[i]!, args[i + 1]!))
  for (const change of changes) change()
  return OK
}

const invalid = (name: string, reason: string): never =>
  fail(`ERR CONFIG SET failed (possibly related to argument '${name}') - ${reason}`)

/** Rejects unknown, immutable and repeated settings before any value is checked. */
const checkName = (server: Server, original: string, names: Set<string>): void => {
  const name = original.toLowerCase()
  if (name !== EVENTS && !server.config.has(name)) {
    return fail(`ERR Unknown option or number of arguments for CONFIG SET - '${original}'`)
  }
  if (server.config.isImmutable(name)) return invalid(original, "can't set immutable config")
  if (names.has(name)) return invalid(original, "duplicate parameter")
  names.add(name)
}

const configChange = (server: Server, original: string, value: string): () => void => {
  const name = original.toLowerCase()
  if (name === EVENTS) {
    const flags = parseFlags(value)
    if (flags === undefined) return invalid(original, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
    return () => {
      server.flags = flags
    }
  }
  const accepted = server.config.check(name, value)
  if ("reason" in accepted) return invalid(original, accepted.reason)
  return () => {
    server.config.set(name, accepted.value)
    if (name === "requirepass") server.users.default.setPassword(value)
  }
}

export const configCommands: ReadonlyArray<Command> = [
  define("config", config)
]
