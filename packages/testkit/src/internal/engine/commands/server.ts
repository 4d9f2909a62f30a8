/**
 * Connection, introspection and administration.
 */
import type { Client } from "../client.ts"
import { subscriptions } from "../client.ts"
import { IMMUTABLE, NUMERIC, parseMemory, POLICIES } from "../config.ts"
import { globMatch } from "../glob.ts"
import { leaveMulti } from "../housekeeping.ts"
import { printFlags } from "../notifications.ts"
import { integer, parseInteger, smallInteger } from "../numbers.ts"
import type { Context } from "../registry.ts"
import { commands, define } from "../registry.ts"
import type { Value } from "../reply.ts"
import { fail, OK, Status, syntaxError } from "../reply.ts"
import { DATABASES } from "../server.ts"
import { info } from "./info.ts"

define("ping", -1, "p", ({ client }, args) => {
  if (args.length > 2) return fail("ERR wrong number of arguments for 'ping' command")
  if (subscriptions(client) > 0) return ["pong", args[1] ?? ""]
  return args[1] ?? new Status("PONG")
})
define("echo", 2, "", (_context, args) => args[1]!)
define("select", 2, "l", ({ client }, args) => {
  const index = smallInteger(args[1]!)
  if (index < 0 || index >= DATABASES) return fail("ERR DB index is out of range")
  client.db = index
  return OK
})
define("auth", -2, "sl", (_context, args) => {
  if (args.length > 3) return syntaxError()
  if (args.length === 3 && args[1] === "default") return OK
  if (args.length === 3) return fail("WRONGPASS invalid username-password pair or user is disabled.")
  return fail(
    "ERR AUTH <password> called without any password configured for the default user. " +
      "Are you sure your configuration is correct?"
  )
})
define("hello", -1, "sl", ({ client }, args) => {
  const version = args[1] === undefined ? 2 : parseInteger(args[1])
  if (version === undefined) return fail("ERR Protocol version is not an integer or out of range")
  // Replies here are those of RESP2; a client that asks for RESP3 falls back.
  if (version !== 2) return fail("NOPROTO unsupported protocol version")
  for (let i = 2; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    if (option === "auth" && i + 2 < args.length) i += 2
    else if (option === "setname" && i + 1 < args.length) client.name = args[++i]!
    else return fail(`ERR Syntax error in HELLO option '${args[i]!}'`)
  }
  return [
    "server",
    "redis",
    "version",
    "7.0.15",
    "proto",
    2,
    "id",
    client.id,
    "mode",
    "standalone",
    "role",
    "master",
    "modules",
    []
  ]
})
define("quit", -1, "smpl", ({ client, server }) => {
  server.dropLater(client)
  return OK
})
define("reset", 1, "smpl", ({ client, server }) => {
  server.unsubscribeAll(client)
  leaveMulti(server, client)
  client.db = 0
  client.name = ""
  return new Status("RESET")
})
define("time", 1, "l", ({ server }) => [String(Math.floor(server.micros / 1e6)), String(server.micros % 1e6)])
define("info", -1, "l", ({ server }, args) => info(server, args.slice(1)))
define("wait", 3, "s", (_context, args) => {
  integer(args[1]!)
  integer(args[2]!, "ERR timeout is not an integer or out of range")
  return 0
})
define("role", 1, "sl", () => ["master", 0, []])
define("lastsave", 1, "l", ({ server }) => Math.floor(server.startedAt / 1000))
define("swapdb", 3, "w", ({ server }, args) => {
  const a = smallInteger(args[1]!, "ERR invalid first DB index")
  const b = smallInteger(args[2]!, "ERR invalid second DB index")
  if (a < 0 || b < 0 || a >= DATABASES || b >= DATABASES) return fail("ERR DB index is out of range")
  if (a === b) return OK
  const [first, second] = [server.dbs[a]!, server.dbs[b]!]
  // A key that is in either database changes for those who watch it in the other.
  for (const key of [...first.entries.keys(), ...second.entries.keys()]) {
    server.touch(first, key)
    server.touch(second, key)
  }
  server.dbs[a] = second
  server.dbs[b] = first
  first.index = b
  second.index = a
  for (const db of [first, second]) server.blocked.markAll(db)
  return OK
})
define("debug", -2, "s", () =>
  fail(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local " +
      "connection, otherwise you need to set this option in the configuration file, and then restart the server."
  ))
define("command", -1, "l", (_context, args) => {
  const sub = args[1]?.toLowerCase()
  if (sub === "count") return commands.size
  if (sub === "docs" || sub === undefined) return []
  if (sub === "list") return Array.from(commands.keys())
  if (sub === "info") return args.slice(2).map((name) => describe(name))
  return fail(`ERR unknown subcommand '${args[1]!}'. Try COMMAND HELP.`)
})

const describe = (name: string): Value => {
  const command = commands.get(name.toLowerCase())
  return command === undefined
    ? null
    : [command.name, command.arity, [new Status(command.write ? "write" : "readonly")], 1, 1, 1]
}

define("config", -2, "sl", ({ server }, args) => {
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
  const changes: Array<() => void> = []
  for (let i = 2; i < args.length; i += 2) changes.push(configChange(server, args[i]!, args[i + 1]!))
  for (const change of changes) change()
  return OK
})

const configChange = (server: Context["server"], original: string, value: string): () => void => {
  const name = original.toLowerCase()
  const invalid = (reason: string) =>
    fail(`ERR CONFIG SET failed (possibly related to argument '${original}') - ${reason}`)
  if (!server.config.has(name)) {
    return fail(`ERR Unknown option or number of arguments for CONFIG SET - '${original}'`)
  }
  if (IMMUTABLE.has(name)) return invalid("can't set immutable config")
  if (name === "notify-keyspace-events") {
    const old = server.flags
    if (!server.setFlags(value)) return invalid("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
    const next = server.flags
    server.flags = old
    return () => {
      server.flags = next
    }
  }
  let stored = value
  if (name === "maxmemory") {
    const bytes = parseMemory(value)
    if (bytes === undefined) return invalid("argument must be a memory value")
    stored = String(bytes)
  } else if (name === "maxmemory-policy") {
    stored = value.toLowerCase()
    if (!POLICIES.has(stored)) {
      return invalid(`argument(s) must be one of the following: ${Array.from(POLICIES).join(", ")}`)
    }
  } else if (NUMERIC.has(name) && parseInteger(value) === undefined) {
    return invalid("argument couldn't be parsed into an integer")
  }
  return () => {
    server.config.set(name, stored)
  }
}

const line = (context: Context, client: Client): string => {
  const { now } = context
  const flags = client.blocked !== undefined
    ? "b"
    : client.queue !== undefined
    ? "x"
    : subscriptions(client) > 0
    ? "P"
    : "N"
  return `id=${client.id} addr=127.0.0.1:${40000 + client.id} laddr=127.0.0.1:6379 fd=${
    client.id + 7
  } name=${client.name} ` +
    `age=${Math.floor((now - client.createdAt) / 1000)} idle=${
      Math.floor((now - client.lastAt) / 1000)
    } flags=${flags} ` +
    `db=${client.db} sub=${client.channels.size} psub=${client.patterns.size} ssub=${client.shards.size} ` +
    `multi=${
      client.queue === undefined ? -1 : client.queue.length
    } qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=1024 ` +
    `rbp=0 obl=0 oll=0 omem=0 tot-mem=2048 events=r cmd=${client.lastCommand} user=default redir=-1 resp=2`
}

define("client", -2, "sl", (context, args) => {
  const { client, server } = context
  const sub = args[1]!.toLowerCase()
  switch (sub) {
    case "id":
      return client.id
    case "setname":
      if (/[^!-~]/.test(args[2]!)) {
        return fail("ERR Client names cannot contain spaces, newlines or special characters.")
      }
      client.name = args[2]!
      return OK
    case "getname":
      return client.name === "" ? null : client.name
    case "info":
      return `${line(context, client)}\n`
    case "list":
      return Array.from(server.clients.values()).filter((item) => listed(item, args)).map((item) =>
        `${line(context, item)}\n`
      )
        .join("")
    case "kill":
      return kill(context, args)
    case "unblock": {
      const target = server.clients.get(integer(args[2]!))?.blocked
      if (target === undefined) return 0
      server.unblock(
        target,
        args[3]?.toLowerCase() === "error"
          ? server.failure("UNBLOCKED client unblocked via CLIENT UNBLOCK")
          : target.timedOut
      )
      return 1
    }
    case "no-evict":
      return /^(?:on|off)$/i.test(args[2]!) ? OK : syntaxError()
    default:
      return OK
  }
})

const kindOf = (client: Client): string => subscriptions(client) > 0 ? "pubsub" : "normal"

const listed = (client: Client, args: ReadonlyArray<string>): boolean => {
  if (args.length === 2) return true
  const option = args[2]!.toLowerCase()
  if (option === "type" && args.length === 4) return kindOf(client) === args[3]!.toLowerCase()
  if (option === "id" && args.length > 3) {
    return args.slice(3).some((id) => integer(id, "ERR Invalid client ID") === client.id)
  }
  return syntaxError()
}

const kill = (context: Context, args: ReadonlyArray<string>): Value => {
  const { client, server } = context
  let matches: (item: Client) => boolean
  let skipMe = true
  const address = (item: Client) => `127.0.0.1:${40000 + item.id}`
  if (args.length === 3) {
    const found = Array.from(server.clients.values()).find((item) => address(item) === args[2])
    if (found === undefined) return fail("ERR No such client")
    if (found === client) server.dropLater(found)
    else server.drop(found)
    return OK
  }
  matches = () => true
  for (let i = 2; i < args.length; i += 2) {
    const option = args[i]!.toLowerCase()
    const value = args[i + 1]
    if (value === undefined) return syntaxError()
    const before = matches
    if (option === "id") {
      const id = integer(value, "ERR client-id should be greater than 0")
      if (id < 1) return fail("ERR client-id should be greater than 0")
      matches = (item) => before(item) && item.id === id
    } else if (option === "type") {
      const type = value.toLowerCase()
      if (!["normal", "pubsub", "master", "replica", "slave"].includes(type)) {
        return fail(`ERR Unknown client type '${value}'`)
      }
      matches = (item) => before(item) && kindOf(item) === type
    } else if (option === "addr") matches = (item) => before(item) && address(item) === value
    else if (option === "laddr") matches = (item) => before(item) && value === "127.0.0.1:6379"
    else if (option === "user") matches = (item) => before(item) && value === "default"
    else if (option === "skipme") {
      if (!/^(?:yes|no)$/i.test(value)) return syntaxError()
      skipMe = value.toLowerCase() === "yes"
    } else return syntaxError()
  }
  const victims = Array.from(server.clients.values()).filter((item) => matches(item) && !(skipMe && item === client))
  for (const victim of victims) {
    if (victim === client) server.dropLater(victim)
    else server.drop(victim)
  }
  return victims.length
}
