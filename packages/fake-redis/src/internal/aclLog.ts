/** The log of denied commands and logins behind ACL LOG, and the error messages of denied commands. */
import type { Client } from "./client.ts"
import { describeClient } from "./clientInfo.ts"
import type { Server } from "./server.ts"
import type { Denial } from "./users.ts"

type Where = "toplevel" | "multi" | "lua" | "module"

interface Failure {
  readonly reason: Denial["reason"] | "auth"
  readonly object: string
}

export interface AclLogEntry extends Failure {
  readonly context: Where
  readonly username: string
  count: number
  at: number
  client: string
}

/** An identical failure within this time only increments the earlier entry's count. */
const groupingMillis = 60_000

export class AclLog {
  entries: Array<AclLogEntry> = []

  add(server: Server, client: Client, { object, reason }: Failure, context: Where, username?: string): void {
    const name = username ?? client.user?.name ?? "default"
    const same = this.entries.slice(0, 10).find((entry) =>
      entry.reason === reason && entry.context === context && entry.object === object && entry.username === name &&
      server.now - entry.at <= groupingMillis
    )
    const text = describeClient(server.now, client)
    if (same !== undefined) {
      this.entries = [same, ...this.entries.filter((entry) => entry !== same)]
      same.count++
      same.at = server.now
      same.client = text
      return
    }
    this.entries.unshift({ reason, context, object, username: name, count: 1, at: server.now, client: text })
    this.entries.length = Math.min(this.entries.length, server.config.number("acllog-max-len"))
  }
}

export const denialText = ({ object, reason }: Denial): string => {
  switch (reason) {
    case "command":
      return `NOPERM this user has no permissions to run the '${object}' command`
    case "key":
      return "NOPERM this user has no permissions to access one of the keys used as arguments"
    case "channel":
      return "NOPERM this user has no permissions to access one of the channels used as arguments"
  }
}

const inScript: Readonly<Record<Denial["reason"], string>> = {
  command: "can't run this command or subcommand",
  key: "can't access at least one of the keys mentioned in the command arguments",
  channel: "can't publish to the channel mentioned in the command"
}

export const denialInScript = ({ reason }: Denial): string => `ERR The user executing the script ${inScript[reason]}`

const inTransaction: Readonly<Record<Denial["reason"], string>> = {
  command: "no permission to execute the command or subcommand",
  key: "no permission to touch the specified keys",
  channel: "no permission to access one of the channels used as arguments"
}

export const denialInTransaction = ({ reason }: Denial): string =>
  "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
  `This command is no longer allowed for the following reason: ${inTransaction[reason]}`
