/** Pub/sub commands: publish, subscribe and inspect subscriptions. */
import type { Client } from "../client.ts"
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { globMatch } from "../glob.ts"
import type { Value } from "../reply.ts"
import { Confirmations, fail } from "../reply.ts"
import type { Kind } from "../subscribers.ts"

const countOf = (kind: Kind, client: Client): number =>
  kind === "shards" ? client.shards.size : client.channels.size + client.patterns.size

const subscribe = (kind: Kind) => ({ client, script, server }: Context, args: ReadonlyArray<string>): Value => {
  if (script) return fail("ERR This Redis command is not allowed from script")
  const command = args[0]!.toLowerCase()
  return new Confirmations(
    args.slice(1).map((name) => {
      server.subscribers.add(kind, name, client)
      return [command, name, countOf(kind, client)]
    })
  )
}

const unsubscribe = (kind: Kind) => ({ client, server }: Context, args: ReadonlyArray<string>): Value => {
  const command = args[0]!.toLowerCase()
  const names = args.length > 1 ? args.slice(1) : Array.from(client[kind])
  if (names.length === 0) return new Confirmations([[command, null, countOf(kind, client)]])
  return new Confirmations(names.map((name) => {
    server.subscribers.remove(kind, name, client)
    return [command, name, countOf(kind, client)]
  }))
}

const pubsub: Handler = ({ server }, args) => {
  const sub = args[1]!.toLowerCase()
  const { channels, patterns, shards } = server.subscribers
  if (sub === "numpat") return patterns.size
  const index = sub.startsWith("shard") ? shards : channels
  if (sub.endsWith("numsub")) return args.slice(2).flatMap((name): Array<Value> => [name, index.get(name)?.size ?? 0])
  if (args.length > 3) {
    return fail(`ERR unknown subcommand or wrong number of arguments for '${args[1]!}'. Try PUBSUB HELP.`)
  }
  const names = Array.from(index.keys())
  return args[2] === undefined ? names : names.filter((name) => globMatch(args[2]!, name))
}

export const pubsubCommands: ReadonlyArray<Command> = [
  define("subscribe", subscribe("channels")),
  define("psubscribe", subscribe("patterns")),
  define("ssubscribe", subscribe("shards")),
  define("unsubscribe", unsubscribe("channels")),
  define("punsubscribe", unsubscribe("patterns")),
  define("sunsubscribe", unsubscribe("shards")),
  define("publish", ({ server }, args) => server.subscribers.publish(args[1]!, args[2]!)),
  define("spublish", ({ server }, args) => server.subscribers.publishSharded(args[1]!, args[2]!)),
  define("pubsub", pubsub)
]
