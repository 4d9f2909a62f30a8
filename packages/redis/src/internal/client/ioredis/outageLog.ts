/**
 * Logs the start and the end of each outage, and counts the connections that are down. The drivers use it to watch
 * their command connections. `subscriptions` and `clusterSubscriptions`, which replace lost connections, call `lost`
 * and `back`.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import type { Cluster, Redis as Client } from "ioredis"
import * as log from "../log.ts"
import { addressOf, mistakeOf } from "./connection.ts"
import { connectionsDown, type Kind } from "./connectionsDown.ts"
import { listen, listenToNodes } from "./listeners.ts"

export interface OutageLog {
  /** Logs the first loss, and the first reason that the connection cannot be restored. */
  readonly lost: (reason?: { readonly message: string }) => void
  readonly back: () => void
}

const consequence: { readonly [Role in Kind]: string } = {
  commands: "commands fail until it is back",
  subscriber: "until it is back, each hand-off to this process may take as long as a lease"
}

/** Stops when its scope closes, because a deliberate close is not an outage. */
export const make = Effect.fnUntraced(function*(
  role: Kind,
  address: () => string
): Effect.fn.Return<OutageLog, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let since: number | undefined
  let isExplained = false
  let isClosed = false
  const end = () => {
    if (since === undefined) return
    run(Metric.modify(connectionsDown[role], -1))
    since = undefined
    isExplained = false
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      end()
    })
  )
  return {
    lost: (reason) => {
      if (isClosed) return
      if (since === undefined) {
        since = clock.currentTimeMillisUnsafe()
        run(Effect.andThen(
          Metric.modify(connectionsDown[role], 1),
          log.warning(`The ${role} connection to Redis at ${address()} is lost: ${consequence[role]}`)
        ))
      }
      if (reason === undefined || isExplained) return
      isExplained = true
      run(log.warning(`The ${role} connection to Redis cannot be restored yet: ${reason.message}`))
    },
    back: () => {
      if (since === undefined) return
      const lasted = Duration.format(Duration.millis(clock.currentTimeMillisUnsafe() - since))
      end()
      run(log.info(`The ${role} connection to Redis at ${address()} is back after ${lasted}`))
    }
  }
})

/** Watches a client that reconnects by itself. */
export const watch = (client: Client, { back, lost }: OutageLog): Effect.Effect<void, never, Scope.Scope> =>
  listen(client, { close: () => lost(mistakeOf(client)), ready: back })

/**
 * Watches a Cluster client. A node counts as down from the loss of its connection until it is ready again or has left
 * the Cluster.
 */
export const watchCluster = (cluster: Cluster, outages: OutageLog): Effect.Effect<void, never, Scope.Scope> =>
  Effect.suspend(() => {
    const lost = new Set<string>()
    const settle = () => {
      if (lost.size === 0) outages.back()
    }
    const ofNode = (node: Client) => ({
      ready: () => {
        lost.delete(addressOf(node))
        settle()
      },
      close: () => {
        // ioredis removes a node without slots before it closes the connection
        if (!cluster.nodes("all").includes(node)) return
        lost.add(addressOf(node))
        outages.lost()
      }
    })
    const refresh = () => {
      const known = new Set(cluster.nodes("all").map(addressOf))
      for (const address of lost) if (!known.has(address)) lost.delete(address)
      settle()
    }
    return Effect.andThen(listenToNodes(cluster, ofNode), listen(cluster, { refresh }))
  })
