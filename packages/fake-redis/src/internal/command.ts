/**
 * The definition of a command. `commandTable.ts` puts all of them together.
 */
import type { Context } from "./context.ts"
import type { Value } from "./reply.ts"

/** Stands for the reply of a command that has blocked. */
export const BLOCKED: unique symbol = Symbol("blocked")

export type Handler = (context: Context, args: ReadonlyArray<string>) => Value | typeof BLOCKED

export interface Command {
  readonly name: string
  /** As in Redis: exact if positive, a minimum if negative; the name counts. */
  readonly arity: number
  readonly write: boolean
  /** `s`: not from scripts, `l`: served while loading or busy, `m`: not queued by MULTI, `p`: in a subscribed session. */
  readonly flags: string
  readonly run: Handler
}

/** `flags` of a command: `w` writes, and those of `Command`. */
export const define = (name: string, arity: number, flags: string, run: Handler): Command => ({
  name,
  arity,
  write: flags.includes("w"),
  flags,
  run
})

const arityOk = (arity: number, count: number): boolean => arity >= 0 ? count === arity : count >= -arity

/** The arity of subcommands, the two names counted. */
const SUBCOMMANDS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  xgroup: { create: -5, setid: -5, destroy: 4, createconsumer: 5, delconsumer: 5, help: 2 },
  xinfo: { stream: -3, groups: 3, consumers: 4, help: 2 },
  pubsub: { channels: -2, shardchannels: -2, numsub: -2, shardnumsub: -2, numpat: 2 },
  client: {
    id: 2,
    setname: 3,
    getname: 2,
    list: -2,
    info: 2,
    kill: -3,
    pause: -3,
    unpause: 2,
    setinfo: 4,
    tracking: -3,
    trackinginfo: 2,
    caching: 3,
    getredir: 2,
    "no-evict": 3,
    reply: 3,
    unblock: -3
  },
  config: { get: -3, set: -4, resetstat: 2, rewrite: 2 },
  script: { load: 3, exists: -3, flush: -2, kill: 2, debug: 3 },
  memory: { usage: -3, doctor: 2, stats: 2, purge: 2, help: 2 },
  latency: { doctor: 2, graph: 3, help: 2, histogram: -2, history: 3, latest: 2, reset: -2 },
  command: { count: 2, docs: -2, getkeys: -4, info: -2, list: -2 },
  object: { encoding: 3, refcount: 3, idletime: 3, freq: 3, help: 2 }
}

/** Why the arguments of a command are too many or too few, if they are. */
export const checkArity = (command: Command, args: ReadonlyArray<string>): string | undefined => {
  const subcommands = args.length > 1 ? SUBCOMMANDS[command.name] : undefined
  if (subcommands !== undefined) {
    const name = args[1]!.toLowerCase()
    const arity = subcommands[name]
    if (arity === undefined) {
      return `ERR unknown subcommand '${args[1]!.slice(0, 128)}'. Try ${command.name.toUpperCase()} HELP.`
    }
    return arityOk(arity, args.length)
      ? undefined
      : `ERR wrong number of arguments for '${command.name}|${name}' command`
  }
  return arityOk(command.arity, args.length) ? undefined : `ERR wrong number of arguments for '${command.name}' command`
}
