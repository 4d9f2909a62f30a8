/**
 * Commands about the server: time, INFO, replication as of a server without replicas, SWAPDB, COMMAND.
 */
import type { Command, Handler } from "../command.ts"
import { checkArity, define } from "../command.ts"
import { DATABASES } from "../keyspace.ts"
import { hasNoKeys, keysOf, positionsOf } from "../keySpecs.ts"
import { integer, smallInteger } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, OK, Status } from "../reply.ts"
import type { Server } from "../server.ts"
import { info } from "./info.ts"

const wait: Handler = (_context, args) => {
  integer(args[1]!)
  integer(args[2]!, "ERR timeout is not an integer or out of range")
  return 0
}

const swapdb: Handler = ({ server }, args) => {
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
}

const command: Handler = ({ server }, args) => {
  switch (args[1]?.toLowerCase()) {
    case "count":
      return server.commands.size
    case "docs":
      return []
    case "list":
      return Array.from(server.commands.keys())
    case "getkeys":
      return getKeys(server, args.slice(2))
    case "info":
      if (args.length > 2) return args.slice(2).map((name) => describe(server.commands.get(name.toLowerCase())))
  }
  return Array.from(server.commands.values(), describe)
}

const getKeys = (server: Server, args: ReadonlyArray<string>): Value => {
  const command = server.commands.get(args[0]!.toLowerCase())
  if (command === undefined) return fail("ERR Invalid command specified")
  if (hasNoKeys(command.name)) return fail("ERR The command has no key arguments")
  if (checkArity(command, args) !== undefined) return fail("ERR Invalid number of arguments specified for command")
  return keysOf(args) ?? fail("ERR Invalid arguments specified for command")
}

const describe = (command: Command | undefined): Value =>
  command === undefined
    ? null
    : [
      command.name,
      command.arity,
      [new Status(command.write ? "write" : "readonly")],
      ...positionsOf(command.name),
      [],
      [],
      [],
      []
    ]

export const serverCommands: ReadonlyArray<Command> = [
  define("time", 1, "l", ({ server }) => [String(Math.floor(server.micros / 1e6)), String(server.micros % 1e6)]),
  define("info", -1, "l", ({ server }, args) => info(server, args.slice(1))),
  define("wait", 3, "s", wait),
  define("role", 1, "sl", () => ["master", 0, []]),
  define("lastsave", 1, "l", ({ server }) => Math.floor(server.startedAt / 1000)),
  define("swapdb", 3, "w", swapdb),
  define("debug", -2, "s", () =>
    fail(
      "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local " +
        "connection, otherwise you need to set this option in the configuration file, and then restart the server."
    )),
  define("command", -1, "l", command)
]
