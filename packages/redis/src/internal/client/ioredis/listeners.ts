/** Listens to events from a client, or from each Cluster node, until the scope closes. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Cluster, Redis as Client } from "ioredis"

/** Listeners by event. A Cluster passes the node to listeners for node events. */
type Listeners = Readonly<Record<string, (node: Client) => void>>

/**
 * Node warns of a leak if a client has more than ten listeners for an event. An application's client has more with only
 * three layers.
 */
const expect = (client: Client | Cluster, more: 1 | -1) => {
  const most = client.getMaxListeners()
  // Zero means that there is no limit
  if (most > 0) client.setMaxListeners(most + more)
}

export const listen = (client: Client | Cluster, listeners: Listeners): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      expect(client, 1)
      for (const [event, listener] of Object.entries(listeners)) client.on(event, listener)
    }),
    () =>
      Effect.sync(() => {
        for (const [event, listener] of Object.entries(listeners)) client.off(event, listener)
        expect(client, -1)
      })
  )

/** Listens to each Cluster node, including nodes that join later. */
export const listenToNodes = (
  cluster: Cluster,
  listenersOf: (node: Client) => Listeners
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.sync(() => {
      const added = new Map<Client, Listeners>()
      const add = (node: Client) => {
        const listeners = listenersOf(node)
        added.set(node, listeners)
        for (const [event, listener] of Object.entries(listeners)) node.on(event, listener)
      }
      const remove = (node: Client) => {
        for (const [event, listener] of Object.entries(added.get(node) ?? {})) node.off(event, listener)
        added.delete(node)
      }
      cluster.nodes("all").forEach(add)
      cluster.on("+node", add).on("-node", remove)
      return () => {
        cluster.off("+node", add).off("-node", remove)
        for (const node of added.keys()) remove(node)
      }
    }),
    (stop) => Effect.sync(stop)
  ))
