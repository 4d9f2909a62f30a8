/** Moves a hash slot from one Cluster node to another, like `redis-cli --cluster reshard`. */
import { Effect } from "effect"
import type { ClusterSetup, RedisServerError, Reply, Server } from "./redisServer.ts"

const items = (reply: Reply): ReadonlyArray<Reply> => Array.isArray(reply) ? reply : []

/** Returns the slot's owner, according to the first node. */
export const ownerOfSlot = ({ nodes }: ClusterSetup, slot: number): Effect.Effect<Server, RedisServerError> =>
  Effect.map(nodes[0]!.send("CLUSTER", "SLOTS"), (ranges) => {
    const range = items(ranges).map(items).find(([first, last]) => Number(first) <= slot && slot <= Number(last))
    const port = Number(items(range?.[2] ?? null)[1])
    return nodes.find((node) => node.port === port)!
  })

export const keysInSlot = (node: Server, slot: number): Effect.Effect<ReadonlyArray<string>, RedisServerError> =>
  Effect.map(
    node.send("CLUSTER", "GETKEYSINSLOT", String(slot), "1000"),
    (keys) => items(keys).map(String)
  )

/**
 * Moves a slot and its keys, one by one. Runs `midway` twice: after half of the keys have moved, and after all have
 * moved but before the nodes know the new owner.
 */
export const moveSlot = Effect.fnUntraced(function*<E>(
  setup: ClusterSetup,
  slot: number,
  to: Server,
  midway: Effect.Effect<void, E> = Effect.void
) {
  const from = yield* ownerOfSlot(setup, slot)
  const [source, target] = yield* Effect.forEach([from, to], (node) => Effect.map(node.send("CLUSTER", "MYID"), String))
  const say = (node: Server, ...what: ReadonlyArray<string>) => node.send("CLUSTER", "SETSLOT", String(slot), ...what)
  yield* say(to, "IMPORTING", source!)
  yield* say(from, "MIGRATING", target!)
  const all = (yield* keysInSlot(from, slot)).toSorted()
  for (const [i, key] of all.entries()) {
    yield* from.send("MIGRATE", "127.0.0.1", String(to.port), key, "0", "1500")
    if (i === all.length >> 1) yield* midway
  }
  for (const key of yield* keysInSlot(from, slot)) {
    yield* from.send("MIGRATE", "127.0.0.1", String(to.port), key, "0", "1500")
  }
  yield* midway
  const others = setup.nodes.filter((node) => node !== from && node !== to)
  // Notify the new owner first, because the slot must always have an owner
  for (const node of [to, from, ...others]) yield* say(node, "NODE", target!)
})
