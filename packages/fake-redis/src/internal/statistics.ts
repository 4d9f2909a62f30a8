/**
 * Command statistics: counts for INFO, and the slow log. Time stands still while a command runs, so every command takes
 * 0 microseconds.
 */
import type { Client } from "./client.ts"
import { addressOf } from "./clientInfo.ts"
import type { CommandSpec } from "./commandSpec.ts"
import { redacted } from "./redaction.ts"
import type { Value } from "./reply.ts"
import { Fail } from "./reply.ts"
import type { Server } from "./server.ts"

interface Calls {
  calls: number
  rejected: number
  failed: number
}

export interface SlowEntry {
  readonly id: number
  /** When the command ran, in seconds since the epoch. */
  readonly at: number
  readonly args: ReadonlyArray<string>
  readonly address: string
  readonly name: string
}

/** The maximum number of arguments that the slow log keeps, and of bytes in each. */
const mostArguments = 32
const longestArgument = 128

const shortened = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const kept = args.slice(0, args.length > mostArguments ? mostArguments - 1 : mostArguments).map((arg) =>
    arg.length > longestArgument
      ? `${arg.slice(0, longestArgument)}... (${arg.length - longestArgument} more bytes)`
      : arg
  )
  return args.length > mostArguments ? [...kept, `... (${args.length - kept.length} more arguments)`] : kept
}

export class Statistics {
  private commands = new Map<string, Calls>()
  private errors = new Map<string, number>()
  slow: ReadonlyArray<SlowEntry> = []
  private nextSlow = 0

  reset(): void {
    this.commands = new Map()
    this.errors = new Map()
  }

  private of(name: string): Calls {
    let calls = this.commands.get(name)
    if (calls === undefined) this.commands.set(name, calls = { calls: 0, rejected: 0, failed: 0 })
    return calls
  }

  rejected({ name }: CommandSpec): void {
    this.of(name).rejected++
  }

  ran({ name }: CommandSpec, value: Value | symbol): void {
    const calls = this.of(name)
    calls.calls++
    if (value instanceof Fail) calls.failed++
  }

  /** Counts an error reply by its code, the first word. */
  failed({ message }: Fail): void {
    const [word = ""] = message.split(" ", 1)
    this.errors.set(word, (this.errors.get(word) ?? 0) + 1)
  }

  /** Adds a command to the slow log. `client` is missing for commands that a script runs. */
  logSlow(server: Server, client: Client | undefined, spec: CommandSpec, args: ReadonlyArray<string>): void {
    const threshold = server.config.number("slowlog-log-slower-than")
    if (threshold !== 0 || spec.flags.has("skip_slowlog")) return
    const entry = {
      id: this.nextSlow++,
      at: Math.floor(server.now / 1000),
      args: shortened(redacted(spec, args)),
      address: client === undefined ? "?:0" : addressOf(client),
      name: client?.name ?? ""
    }
    this.slow = [entry, ...this.slow].slice(0, server.config.number("slowlog-max-len"))
  }

  commandLines(): ReadonlyArray<string> {
    return Array.from(
      this.commands,
      ([name, { calls, failed, rejected }]) =>
        `cmdstat_${name}:calls=${calls},usec=0,usec_per_call=0.00,rejected_calls=${rejected},failed_calls=${failed}`
    )
  }

  errorLines(): ReadonlyArray<string> {
    return Array.from(this.errors, ([word, count]) => `errorstat_${word}:count=${count}`)
  }

  callsOf(name: string): number | undefined {
    return this.commands.get(name)?.calls
  }
}
