/**
 * Publishing and subscribing. A session gets one reply for a (un)subscribing command: how many subscriptions it has then.
 */
import type { Client } from "../client.ts"
import { subscriptions } from "../client.ts"
import { globMatch } from "../glob.ts"
import type { Context } from "../registry.ts"
import { define } from "../registry.ts"
import type { Value } from "../reply.ts"
import { fail } from "../reply.ts"

type Kind = "channels" | "patterns" | "shards"

const subscribe = (kind: Kind) => (context: Context, args: ReadonlyArray<string>): Value => {
  if (context.script) return fail("ERR This Redis command is not allowed from script")
  for (const name of args.slice(1)) {
    context.client[kind].add(name)
    const index: Map<string, Set<Client>> = context.server[kind]
    const all = index.get(name)
    if (all === undefined) index.set(name, new Set([context.client]))
    else all.add(context.client)
  }
  return subscriptions(context.client)
}
define("subscribe", -2, "sp", subscribe("channels"))
define("psubscribe", -2, "sp", subscribe("patterns"))
define("ssubscribe", -2, "sp", subscribe("shards"))

const unsubscribe = (kind: Kind) => (context: Context, args: ReadonlyArray<string>): Value => {
  const own = context.client[kind]
  const index: Map<string, Set<Client>> = context.server[kind]
  for (const name of args.length > 1 ? args.slice(1) : Array.from(own)) {
    if (!own.delete(name)) continue
    const all = index.get(name)!
    all.delete(context.client)
    if (all.size === 0) index.delete(name)
  }
  return subscriptions(context.client)
}
define("unsubscribe", -1, "sp", unsubscribe("channels"))
define("punsubscribe", -1, "sp", unsubscribe("patterns"))
define("sunsubscribe", -1, "sp", unsubscribe("shards"))

define("publish", 3, "", (context, args) => context.server.publish(args[1]!, args[2]!))
define("spublish", 3, "", (context, args) => {
  let count = 0
  for (const client of context.server.shards.get(args[1]!) ?? []) {
    context.server.push(client, { _tag: "message", channel: args[1]!, message: args[2]! })
    count++
  }
  return count
})

define("pubsub", -2, "", (context, args) => {
  const sub = args[1]!.toLowerCase()
  const { server } = context
  if (sub === "numpat") return server.patterns.size
  const index = sub.startsWith("shard") ? server.shards : server.channels
  if (sub.endsWith("numsub")) return args.slice(2).flatMap((name): Array<Value> => [name, index.get(name)?.size ?? 0])
  if (args.length > 3) {
    return fail(`ERR unknown subcommand or wrong number of arguments for '${args[1]!}'. Try PUBSUB HELP.`)
  }
  const names = Array.from(index.keys())
  return args[2] === undefined ? names : names.filter((name) => globMatch(args[2]!, name))
})
