/** MONITOR: the clients that receive every command that runs. */
import type { Client } from "./client.ts"
import { addressOf } from "./clientInfo.ts"
import type { CommandSpec } from "./commandSpec.ts"
import { redacted } from "./redaction.ts"
import type { Server } from "./server.ts"

const escapes: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\"": "\\\"",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\x07": "\\a",
  "\b": "\\b"
}

const quoted = (text: string): string =>
  `"${
    text.replace(
      /[^ !#-[\]-~]/g,
      (char) => escapes[char] ?? `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`
    )
  }"`

export class Monitors {
  readonly clients = new Set<Client>()
  private lines: Array<string> = []

  /** Records a command for the monitors. Administrative commands are left out, as in Redis. */
  show(server: Server, client: Client, spec: CommandSpec, args: ReadonlyArray<string>, inScript: boolean): void {
    if (this.clients.size === 0 || spec.flags.has("admin")) return
    const seconds = (server.micros / 1e6).toFixed(6)
    const from = inScript ? "lua" : addressOf(client)
    this.lines.push(`${seconds} [${client.db} ${from}] ${redacted(spec, args).map(quoted).join(" ")}`)
  }

  /** Sends the recorded commands after the reply to the last of them. */
  settle(server: Server): void {
    if (this.lines.length === 0) return
    for (const line of this.lines.splice(0)) {
      for (const monitor of this.clients) server.push(monitor, { _tag: "monitor", line })
    }
  }
}
