/** CLIENT subcommands, which list, name, configure, pause and disconnect clients. */
import type { Client } from "../client.ts"
import { addressOf, describeClient, kindOf } from "../clientInfo.ts"
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Fail, fail, OK, syntaxError } from "../reply.ts"
import { cache, track, trackingInfo } from "./clientCache.ts"
import { clientName } from "./connection.ts"

const BAD_TIMEOUT = "ERR timeout is not an integer or out of range"

const setInfo = (client: Client, what: string, text: string): Value => {
  if (what !== "lib-name" && what !== "lib-ver") return fail(`ERR Unrecognized option '${what}'`)
  if (/[^!-~]/.test(text)) return fail(`ERR ${what} cannot contain spaces, newlines or special characters.`)
  if (what === "lib-name") client.libName = text
  else client.libVersion = text
  return OK
}

const replies = (client: Client, how: string): Value => {
  if (how !== "on" && how !== "off" && how !== "skip") return syntaxError()
  if (how !== "skip") client.replies = how
  else if (client.replies !== "off") client.replies = "skip next"
  return OK
}

const client: Handler = (context, args) => {
  const { client, server } = context
  const sub = args[1]!.toLowerCase()
  switch (sub) {
    case "id":
      return client.id
    case "setname":
      client.name = clientName(args[2]!)
      return OK
    case "setinfo":
      return setInfo(client, args[2]!.toLowerCase(), args[3]!)
    case "tracking":
      return track(context, args)
    case "trackinginfo":
      return trackingInfo(client)
    case "caching":
      return cache(client, args[2]!.toLowerCase())
    case "getredir":
      return client.tracking === undefined ? -1 : client.tracking.redirect
    case "reply":
      return replies(client, args[2]!.toLowerCase())
    case "pause": {
      if (args.length > 4) return syntaxError()
      if (args[3] !== undefined && !/^(?:write|all)$/i.test(args[3])) {
        return fail("ERR CLIENT PAUSE mode must be WRITE or ALL")
      }
      const millis = integer(args[2]!, BAD_TIMEOUT)
      if (millis < 0) return fail("ERR timeout is negative")
      server.pause.begin(server.micros, server.micros + millis * 1000, args[3]?.toLowerCase() !== "write")
      return OK
    }
    case "unpause":
      server.pause.end()
      return OK
    case "getname":
      return client.name === "" ? null : client.name
    case "info":
      return `${describeClient(context.now, client)}\n`
    case "list":
      return Array.from(server.clients.values()).filter((item) => listed(item, args))
        .map((item) => `${describeClient(context.now, item)}\n`).join("")
    case "kill":
      return kill(context, args)
    case "unblock":
      return unblock(context, args)
    default: // This must be NO-EVICT, because HELP and unknown subcommands are handled earlier
      return /^(?:on|off)$/i.test(args[2]!) ? OK : syntaxError()
  }
}

const unblock = ({ server }: Context, args: ReadonlyArray<string>): Value => {
  const how = args[3]?.toLowerCase() ?? "timeout"
  if (args.length > 4) {
    return fail(`ERR unknown subcommand or wrong number of arguments for '${args[1]!}'. Try CLIENT HELP.`)
  }
  if (how !== "timeout" && how !== "error") return fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
  const target = server.clients.get(integer(args[2]!))?.blocked
  if (target === undefined) return 0
  server.unblock(
    target,
    how === "error" ? new Fail("UNBLOCKED client unblocked via CLIENT UNBLOCK") : target.timedOut
  )
  return 1
}

const listed = (client: Client, args: ReadonlyArray<string>): boolean => {
  if (args.length === 2) return true
  const option = args[2]!.toLowerCase()
  if (option === "type" && args.length === 4) return kindOf(client) === clientType(args[3]!)
  if (option === "id" && args.length > 3) {
    return args.slice(3).some((id) => integer(id, "ERR Invalid client ID") === client.id)
  }
  return syntaxError()
}

const clientType = (text: string): string =>
  ["normal", "pubsub", "master", "replica", "slave"].includes(text.toLowerCase())
    ? text.toLowerCase()
    : fail(`ERR Unknown client type '${text}'`)

const kill = (context: Context, args: ReadonlyArray<string>): Value => {
  const { client, server } = context
  if (args.length === 3) {
    const found = Array.from(server.clients.values()).find((item) => addressOf(item) === args[2])
    if (found === undefined) return fail("ERR No such client")
    if (found === client) server.dropLater(found)
    else server.drop(found)
    return OK
  }
  let matches: (item: Client) => boolean = () => true
  let skipMe = true
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
      const type = clientType(value)
      matches = (item) => before(item) && kindOf(item) === type
    } else if (option === "addr") matches = (item) => before(item) && addressOf(item) === value
    else if (option === "laddr") matches = (item) => before(item) && value === "127.0.0.1:6379"
    else if (option === "user" && !server.users.all.has(value)) return fail(`ERR No such user '${value}'`)
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

export const clientCommands: ReadonlyArray<Command> = [
  define("client", client)
]
