/**
 * Commands for the server: TIME, INFO, LASTSAVE and SWAPDB. DEBUG is always rejected, and WAIT and ROLE report no
 * replicas.
 */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import { DATABASES } from "../keyspace.ts"
import { integer, smallInteger } from "../numbers.ts"
import { fail, OK } from "../reply.ts"
import type { Server } from "../server.ts"
import { touchWatchers } from "../watches.ts"
import { info } from "./info.ts"

const wait: Handler = (_context, args) => {
  integer(args[1]!)
  const timeout = integer(args[2]!, "ERR timeout is not an integer or out of range")
  return timeout < 0 ? fail("ERR timeout is negative") : 0
}

const exchange = ({ dbs }: Server, a: number, b: number): void => {
  const [first, second] = [dbs[a]!, dbs[b]!]
  dbs[a] = second
  dbs[b] = first
  first.index = b
  second.index = a
}

const swapdb: Handler = ({ server }, args) => {
  const a = smallInteger(args[1]!, "ERR invalid first DB index")
  const b = smallInteger(args[2]!, "ERR invalid second DB index")
  if (a < 0 || b < 0 || a >= DATABASES || b >= DATABASES) return fail("ERR DB index is out of range")
  if (a === b) return OK
  const [first, second] = [server.dbs[a]!, server.dbs[b]!]
  // For WATCH, every key in both databases has changed, but tracking clients are not notified
  for (const key of [...first.entries.keys(), ...second.entries.keys()]) {
    touchWatchers(server, a, key, false)
    touchWatchers(server, b, key, false)
  }
  exchange(server, a, b)
  server.undo.recordSwap(() => exchange(server, a, b))
  for (const db of [first, second]) server.blocked.markAll(db)
  return OK
}

export const serverCommands: ReadonlyArray<Command> = [
  define("time", ({ server }) => [String(Math.floor(server.micros / 1e6)), String(server.micros % 1e6)]),
  define("info", ({ server }, args) => info(server, args.slice(1))),
  define("wait", wait),
  define("role", () => ["master", 0, []]),
  define("lastsave", ({ server }) => Math.floor(server.startedAt / 1000)),
  define("swapdb", swapdb),
  define("debug", () =>
    fail(
      "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local " +
        "connection, otherwise you need to set this option in the configuration file, and then restart the server."
    ))
]
