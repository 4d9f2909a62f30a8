/**
 * Decides whether a command may run. The decision depends on the command's arguments, the user's permissions, the
 * server's state, and the connection's mode.
 */
import { denialText } from "./aclLog.ts"
import { refusedWhileBusy } from "./busyScript.ts"
import type { Client } from "./client.ts"
import { subscriptions } from "./client.ts"
import type { Command } from "./command.ts"
import { arityProblem, describedBy } from "./command.ts"
import type { CommandSpec } from "./commandSpec.ts"
import { refusalIn } from "./errorStates.ts"
import type { Server } from "./server.ts"

export interface Admitted {
  readonly command: Command
  readonly spec: CommandSpec
}

/** The commands that a RESP2 client may send while it is subscribed. */
const whileSubscribed = new Set(
  "subscribe unsubscribe psubscribe punsubscribe ssubscribe sunsubscribe ping quit reset".split(" ")
)

const unknownCommand = (args: ReadonlyArray<string>): string => {
  let shown = ""
  for (let i = 1; i < args.length && shown.length < 128; i++) shown += `'${args[i]!.slice(0, 128 - shown.length)}' `
  return `ERR unknown command '${args[0]!.slice(0, 128)}', with args beginning with: ${shown}`.replace(/[\r\n]/g, " ")
}

const denial = (server: Server, client: Client, spec: CommandSpec, args: ReadonlyArray<string>): string | undefined => {
  const { user } = client
  if (user === undefined) return spec.flags.has("no_auth") ? undefined : "NOAUTH Authentication required."
  if (user.isUnrestricted) return undefined
  const found = user.denies(spec, args)
  if (found === undefined) return undefined
  server.aclLog.add(server, client, found, client.queue === undefined ? "toplevel" : "multi")
  return denialText(found)
}

const refusedHere = (
  { isMonitor, protocol, queue }: Client,
  spec: CommandSpec,
  subscribed: number
): string | undefined => {
  const [name] = spec.name.split("|")
  if (protocol === 2 && subscribed > 0 && !whileSubscribed.has(name!)) {
    return `ERR Can't execute '${spec.name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`
  }
  if (isMonitor && (spec.flags.has("write") || spec.flags.has("readonly"))) {
    return "ERR Replica can't interact with the keyspace"
  }
  return queue !== undefined && spec.flags.has("no_multi") ? "ERR Command not allowed inside a transaction" : undefined
}

/** Returns the command if it may run, otherwise the error text. */
export const admit = (server: Server, client: Client, args: ReadonlyArray<string>): Admitted | string => {
  const command = server.commands.get(args[0]!.toLowerCase())
  if (command === undefined) return unknownCommand(args)
  const spec = describedBy(command, args)
  if (typeof spec === "string") return spec
  client.lastCommand = spec.name
  const refusal = arityProblem(spec, args) ?? denial(server, client, spec, args) ??
    refusedWhileBusy(server.busy, spec) ?? refusalIn(server.errorState, server.config, spec) ??
    refusedHere(client, spec, subscriptions(client))
  if (refusal === undefined) return { command, spec }
  server.statistics.rejected(spec)
  return refusal
}
