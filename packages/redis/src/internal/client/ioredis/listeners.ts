/** Listens to events from a client, or from each Cluster node, until the scope closes. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Cluster, Redis as Client } from "ioredis"

/** Listeners by event. A Cluster passes the node to listeners for node events. */
type Listeners = Readonly<Record<string, (node: Client) => void>>

/**
 * Adds or removes listeners. Also changes the number of listeners from which on Node warns of a leak, ten by default. An
 * application's client exceeds it with only three layers.
 */
const change = (client: Client | Cluster, method: "on" | "off", listeners: Listeners) => {
  const limit = client.getMaxListeners()
  // Zero means that there is no limit
  if (limit > 0) client.setMaxListeners(limit + (method === "on" ? 1 : -1))
  for (const [event, listener] of Object.entries(listeners)) client[method](event, listener)
}

export const listen = (client: Client | Cluster, listeners: Listeners): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => change(client, "on", listeners)),
    () => Effect.sync(() => change(client, "off", listeners))
  )

/** Listens to each Cluster node, including nodes that join later. */
export const listenToNodes = (
  cluster: Cluster,
  listenersOf: (node: Client) => Listeners
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.sync(() => {
      const added = new Map<Client, Listeners>()
      const join = (node: Client) => {
        const listeners = listenersOf(node)
        added.set(node, listeners)
        change(node, "on", listeners)
      }
      const leave = (node: Client) => {
        const listeners = added.get(node)
        if (added.delete(node)) change(node, "off", listeners!)
      }
      const members = { "+node": join, "-node": leave }
      cluster.nodes("all").forEach(join)
      change(cluster, "on", members)
      return () => {
        change(cluster, "off", members)
        for (const node of added.keys()) leave(node)
      }
    }),
    (stop) => Effect.sync(stop)
  ))
