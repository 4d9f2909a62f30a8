/** Sends commands to one server or to a Cluster's nodes. The drivers build `Redis.send` on it. */
import { replyTimeout } from "@effect-simba/core/MutexStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Cluster, Redis as Client } from "ioredis"
import type { CommandSink } from "../commandSink.ts"
import * as Redis from "../effectRedis.ts"
import { ready } from "./applicationClient.ts"
import * as causes from "./causes.ts"
import { addressOf } from "./connection.ts"
import { refusal, refused, subscribing } from "./refusedCommands.ts"
import { onWallClock } from "./wallClock.ts"

export type Send = Redis.Redis["Service"]["send"]

const fail = (cause: unknown) => Effect.fail(Redis.redisError(cause))

/** `name` is the command's name in upper case. */
const sending = (
  run: (command: string, args: ReadonlyArray<string>, name: string) => Effect.Effect<unknown, Redis.RedisError>
): Send =>
<A>(command: string, ...args: ReadonlyArray<string>) =>
  run(command, args, command.toUpperCase()) as Effect.Effect<A, Redis.RedisError>

/** Sends on the shared connection, through the same sink as the scripts. */
export const shared = (send: CommandSink["Service"]["send"]): Send =>
  sending((command, args, name) => {
    const problem = refusal(name, args)
    if (problem !== undefined) return fail(refused(name, problem))
    return Effect.callback((resume) => {
      send(
        command,
        args,
        (failure, reply) => resume(failure === undefined ? Effect.succeed(reply) : fail(failure.cause))
      )
    })
  })

/** Sends on a reserved connection. Refuses subscriptions, because they would break ioredis's subscription count. */
export const reserved = (client: Client | Cluster): Send =>
  sending((command, args, name) =>
    subscribing.has(name)
      ? fail(refused(name, "use Redis.subscribe, or Subscriber"))
      // The connection may have been lost while it was in the pool
      : client.status === "ready"
      ? call(client, command, args)
      : fail(causes.notConnected(addressOf(client)))
  )

const call = (client: Client | Cluster, command: string, args: ReadonlyArray<string>) =>
  Effect.tryPromise({
    try: () => client.call(command, ...args),
    catch: (cause) => Redis.redisError(causes.ofCommand(cause, addressOf(client)))
  })

const callNode = (client: Client, limit: Duration.Duration, command: string, args: ReadonlyArray<string>) =>
  onWallClock(replyTimeout(
    call(client, command, args),
    limit,
    () => fail(causes.timedOut(Duration.format(limit), addressOf(client)))
  ))

/** Sends to one Cluster node. */
export const node = (client: Client, limit: Duration.Duration): Send =>
  sending((command, args) => callNode(client, limit, command, args))

/** The addresses of all slots' primaries. */
const ownersOf = (cluster: Cluster) => new Set(cluster.slots.flatMap((nodes) => nodes.slice(0, 1)))

const byAddress = (cluster: Cluster) =>
  new Map(cluster.nodes("master").map((primary) => [addressOf(primary), primary] as const))

/**
 * Clears the slots that no node serves any more, because ioredis keeps their former primaries. Called after each
 * topology refresh, when every primary is known.
 */
export const forgetUnserved = (cluster: Cluster): void => {
  const known = byAddress(cluster)
  cluster.slots.forEach((nodes, slot) => {
    if (!known.has(nodes[0]!)) cluster.slots[slot] = []
  })
}

/**
 * Refreshes the topology if ioredis has forgotten a slot's primary. When a connection is lost, ioredis forgets the
 * node, but not its slots. The refresh restores the node.
 */
const complete = (cluster: Cluster, limit: Duration.Duration): Effect.Effect<void> =>
  Effect.suspend(() => {
    const known = byAddress(cluster)
    return [...ownersOf(cluster)].every((owner) => known.has(owner))
      ? Effect.void
      : onWallClock(replyTimeout(
        Effect.callback<void>((resume) => cluster.refreshSlotsCache(() => resume(Effect.void))),
        limit,
        () => Effect.void
      ))
  })

/**
 * Sends to a node once it is connected. Otherwise ioredis would queue the command, and might send it after its timeout.
 */
const onceConnected = (client: Client, limit: Duration.Duration): Send =>
  sending((command, args) => Effect.andThen(onWallClock(ready(client, limit)), callNode(client, limit, command, args)))

/** Returns a `send` for each of these addresses. A `send` fails if its node is unknown. */
const sendsTo = (cluster: Cluster, limit: Duration.Duration, addresses: Iterable<string>): ReadonlyArray<Send> => {
  const known = byAddress(cluster)
  return Array.from(addresses, (address) => {
    const primary = known.get(address)
    return primary === undefined ? sending(() => fail(causes.notConnected(address))) : onceConnected(primary, limit)
  })
}

/** Returns a `send` for each primary. A `send` fails if its primary is down. */
export const primaries = (cluster: Cluster, limit: Duration.Duration): Effect.Effect<ReadonlyArray<Send>> =>
  Effect.map(
    complete(cluster, limit),
    // After a redirection, ioredis may have reassigned more slots than actually moved
    () => sendsTo(cluster, limit, new Set([...ownersOf(cluster), ...byAddress(cluster).keys()]))
  )

/** Runs a request on each primary. Returns all results, or the first failure. */
const onPrimaries = <A>(
  cluster: Cluster,
  limit: Duration.Duration,
  run: (send: Send) => Effect.Effect<A, Redis.RedisError>
) =>
  Effect.flatMap(primaries(cluster, limit), (sends) =>
    sends.length === 0
      ? fail(causes.noPrimary)
      : Effect.forEach(sends, run, { concurrency: "unbounded" }))

/** Pings each slot's primary. */
export const pingAll = (cluster: Cluster, limit: Duration.Duration): Effect.Effect<void, Redis.RedisError> =>
  Effect.flatMap(
    complete(cluster, limit),
    () =>
      Effect.forEach(sendsTo(cluster, limit, ownersOf(cluster)), (send) => send("PING"), {
        concurrency: "unbounded",
        discard: true
      })
  )

export const onCluster = (cluster: Cluster, limit: Duration.Duration, send: Send): Send =>
  sending((command, args, name) => {
    const ask = <A>(send: Send) => send<A>(command, ...args)
    const first = Effect.map(onPrimaries(cluster, limit, ask), ([first]) => first)
    switch (name) {
      case "SCRIPT":
        // A primary that is down loads the script on the first call that needs it
        return String(args[0]).toUpperCase() === "LOAD"
          ? Effect.flatMap(
            onPrimaries(cluster, limit, (send) => Effect.result(ask(send))),
            (results) => Effect.fromResult(results.find(Result.isSuccess) ?? results[0]!)
          )
          : first
      case "FLUSHALL":
      case "FLUSHDB":
        return first
      case "KEYS":
        return Effect.map(onPrimaries(cluster, limit, ask<ReadonlyArray<string>>), (keys) => keys.flat())
      case "DBSIZE":
        return Effect.map(onPrimaries(cluster, limit, ask<number>), (sizes) => sizes.reduce((sum, size) => sum + size))
      case "SCAN":
      case "RANDOMKEY":
        return fail(
          refused(name, "on a Cluster a node knows only its own keys: query each of RedisTopology's primaries")
        )
      default:
        return send(command, ...args)
    }
  })
