/**
 * The driver for a client that belongs to the application, connected to one server or a Cluster. Loaded by `IoRedis`.
 */
import * as Effect from "effect/Effect"
import type { Cluster, Redis as Client } from "ioredis"
import type { CommandSink } from "../commandSink.ts"
import { fromRedis, isReply } from "../errors.ts"
import * as applicationClient from "./applicationClient.ts"
import { ofCluster } from "./clusterDriver.ts"
import { withTimeouts } from "./commandTimeouts.ts"
import * as connection from "./connection.ts"
import { ofSingle } from "./driver.ts"
import * as failover from "./failover.ts"
import { type Common, timeouts } from "./options.ts"
import { Pace } from "./pace.ts"

type Send = CommandSink["Service"]["send"]

/**
 * Reconnects the client when a reply shows that its server has become a replica. Connections that this library opens
 * use an ioredis option for this.
 */
const leavingReplica = (client: Client, send: Send, onReplica: () => void): Send => {
  const pace = new Pace()
  return (name, args, done) =>
    send(name, args, (failure, reply) => {
      if (failure !== undefined && isReply(failure.cause) && failure.cause.message.includes("READONLY")) {
        onReplica()
        if (client.status === "ready" && pace.isDue()) client.disconnect(true)
      }
      done(failure, reply)
    })
}

/** The client belongs to the caller, so this driver neither closes it nor changes its options. */
export const ofClient = Effect.fnUntraced(function*(client: Client | Cluster, options: Common) {
  const problem = applicationClient.problemWith(client)
  if (problem !== undefined) return yield* problem
  const settings = yield* timeouts(options)
  yield* Effect.mapError(applicationClient.ready(client, settings.connectTimeout), fromRedis("connect"))
  if (!connection.isCluster(client)) {
    const { follow, followServer, onReplica } = yield* failover.watch({ client: client.options, ...settings })
    // A client that never reconnects would be closed permanently
    const reconnects = typeof client.options.retryStrategy?.(1) === "number"
    const send = yield* withTimeouts(client, settings.commandTimeout, reconnects)
    if (reconnects) {
      yield* Effect.mapError(follow(Effect.succeed(client)), fromRedis("connect"))
      yield* followServer(client)
    }
    return yield* ofSingle(
      client,
      options,
      settings.commandTimeout,
      reconnects ? leavingReplica(client, send, onReplica) : send,
      (role) => follow(connection.duplicate(client, role, { ...settings, client: {} }))
    )
  }
  yield* applicationClient.rejectUnanswered(client)
  const ofNodes = { client: client.options.redisOptions ?? {}, ...settings }
  const ofCopies = connection.settingsOf(client, ofNodes)
  return yield* ofCluster(client, options, ofNodes, connection.duplicateCluster(client, ofCopies))
})
