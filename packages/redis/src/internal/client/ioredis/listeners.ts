/** Listens to a client's events until the scope closes. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Cluster, Redis as Client } from "ioredis"

/** Listeners by event. A Cluster passes the node to listeners of node events. */
type Listeners = Readonly<Record<string, (node: Client) => void>>

export const listen = (client: Client | Cluster, listeners: Listeners): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      for (const [event, listener] of Object.entries(listeners)) client.on(event, listener)
    }),
    () =>
      Effect.sync(() => {
        for (const [event, listener] of Object.entries(listeners)) client.off(event, listener)
      })
  )
