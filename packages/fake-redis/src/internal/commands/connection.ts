/** Commands for the connection itself: greet, authenticate, select a database, close. */
import { subscriptions } from "../client.ts"
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { DATABASES } from "../keyspace.ts"
import { parseInteger, smallInteger } from "../numbers.ts"
import { fail, OK, Status, syntaxError } from "../reply.ts"
import { leaveMulti } from "../watches.ts"

const WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled."

/** Checks the name that a client sets for itself. */
export const clientName = (name: string): string =>
  /[^!-~]/.test(name) ? fail("ERR Client names cannot contain spaces, newlines or special characters.") : name

const ping: Handler = ({ client }, args) => {
  if (args.length > 2) return fail("ERR wrong number of arguments for 'ping' command")
  if (client.protocol === 2 && subscriptions(client) > 0) return ["pong", args[1] ?? ""]
  return args[1] ?? new Status("PONG")
}

const select: Handler = ({ client }, args) => {
  const index = smallInteger(args[1]!)
  if (index < 0 || index >= DATABASES) return fail("ERR DB index is out of range")
  client.db = index
  return OK
}

/** Authenticates the client as a user, or throws the error reply. */
const authenticate = ({ client, server }: Context, command: string, name: string, password: string): void => {
  const user = server.users.authenticate(name, password)
  if (user === undefined) {
    server.aclLog.add(server, client, { reason: "auth", object: command }, "toplevel", name)
    return fail(WRONG_PASSWORD)
  }
  client.user = user
}

const auth: Handler = (context, args) => {
  if (args.length > 3) return syntaxError()
  if (args.length === 2 && context.server.users.default.needsNoPassword) {
    return fail(
      "ERR AUTH <password> called without any password configured for the default user. " +
        "Are you sure your configuration is correct?"
    )
  }
  const [name, password] = args.length === 3 ? [args[1]!, args[2]!] : ["default", args[1]!]
  authenticate(context, args[0]!, name, password)
  return OK
}

const NO_AUTH = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH " +
  "<user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"

const hello: Handler = (context, args) => {
  const { client } = context
  const version = args[1] === undefined ? client.protocol : parseInteger(args[1])
  if (version === undefined) return fail("ERR Protocol version is not an integer or out of range")
  // Sessions within this process always receive RESP2 shapes
  if (version !== 2 && (version !== 3 || !client.wire)) return fail("NOPROTO unsupported protocol version")
  let name = client.name
  for (let i = 2; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    if (option === "auth" && i + 2 < args.length) {
      authenticate(context, args[0]!, args[i + 1]!, args[i + 2]!)
      i += 2
    } else if (option === "setname" && i + 1 < args.length) name = clientName(args[++i]!)
    else return fail(`ERR Syntax error in HELLO option '${args[i]!}'`)
  }
  if (client.user === undefined) return fail(NO_AUTH)
  client.name = name
  client.protocol = version
  return [
    "server",
    "redis",
    "version",
    "7.0.15",
    "proto",
    version,
    "id",
    client.id,
    "mode",
    "standalone",
    "role",
    "master",
    "modules",
    []
  ]
}

const quit: Handler = ({ client, server }) => {
  server.dropLater(client)
  return OK
}

const reset: Handler = ({ client, server }) => {
  server.subscribers.removeAll(client)
  leaveMulti(server, client)
  server.tracker.disable(client)
  server.monitors.clients.delete(client)
  client.isMonitor = false
  client.db = 0
  client.user = server.users.firstUser
  client.name = ""
  client.protocol = 2
  client.replies = "on"
  return new Status("RESET")
}

export const connectionCommands: ReadonlyArray<Command> = [
  define("ping", ping),
  define("echo", (_context, args) => args[1]!),
  define("select", select),
  define("auth", auth),
  define("hello", hello),
  define("quit", quit),
  define("reset", reset)
]
