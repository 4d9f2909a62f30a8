/** Sends commands to one server or to the nodes of a Cluster. The drivers build `Redis.send` from it. */
import { replyTimeout } from "@effect-simba/core/MutexStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Cluster, Redis as Client } from "ioredis"
import type { CommandSink } from "../commandSink.ts"
import * as Redis from "../effectRedis.ts"
import * as causes from "./causes.ts"
import { addressOf } from "./connection.ts"
import { refusal, refused, subscribing } from "./refusedCommands.ts"
import { onWallClock } from "./wallClock.ts"

export type Send = Redis.Redis["Service"]["send"]

const fail = (cause: unknown) => Effect.fail(Redis.redisError(cause))

/** `name` is the command in upper case. */
const sending = (
  run: (command: string, args: ReadonlyArray<string>, name: string) => Effect.Effect<unknown, Redis.RedisError>
): Send =>
<A>(command: string, ...args: ReadonlyArray<string>) =>
  run(command, args, command.toUpperCase()) as Effect.Effect<A, Redis.RedisError>

/** Sends on the shared connection, through the same sink as scripts. */
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

/** Sends on a reserved connection. Refuses subscriptions, which would confuse ioredis's subscription count. */
export const reserved = (client: Client | Cluster): Send =>
  sending((command, args, name) =>
    subscribing.has(name) ? fail(refused(name, "use Redis.subscribe, or Subscriber")) : call(client, command, args)
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

/** Sends to one node of a Cluster. */
export const node = (client: Client, limit: Duration.Duration): Send =>
  sending((command, args) => callNode(client, limit, command, args))

/** Runs a request on each primary, and returns all results or the first failure. */
const onPrimaries = <A>(cluster: Cluster, run: (primary: Client) => Effect.Effect<A, Redis.RedisError>) =>
  Effect.suspend(() => {
    const primaries = cluster.nodes("master")
    return primaries.length === 0
      ? fail(causes.noPrimary)
      : Effect.forEach(primaries, run, { concurrency: "unbounded" })
  })

/**
 * Pings the primary of each slot. ioredis forgets a node whose connection is lost, but not the slots that it serves.
 */
export const pingAll = (cluster: Cluster, limit: Duration.Duration): Effect.Effect<void, Redis.RedisError> =>
  Effect.suspend(() => {
    const primaries = new Map(cluster.nodes("master").map((primary) => [addressOf(primary), primary] as const))
    const owners = new Set(cluster.slots.map(([owner]) => owner))
    return Effect.forEach(owners, (owner) => {
      const primary = owner === undefined ? undefined : primaries.get(owner)
      return primary === undefined ? fail(causes.notConnected(String(owner))) : callNode(primary, limit, "PING", [])
    }, { concurrency: "unbounded", discard: true })
  })

export const onCluster = (cluster: Cluster, limit: Duration.Duration, send: Send): Send =>
  sending((command, args, name) => {
    const ask = (primary: Client) => callNode(primary, limit, command, args)
    const replies = onPrimaries(cluster, ask)
    switch (name) {
      case "SCRIPT":
        // A primary that is down loads the script with the first call that needs it
        return String(args[0]).toUpperCase() === "LOAD"
          ? Effect.flatMap(
            onPrimaries(cluster, (primary) => Effect.result(ask(primary))),
            (results) => Effect.fromResult(results.find(Result.isSuccess) ?? results[0]!)
          )
          : Effect.map(replies, ([first]) => first)
      case "FLUSHALL":
      case "FLUSHDB":
        return Effect.map(replies, ([first]) => first)
      case "KEYS":
        return Effect.map(replies, (keys) => keys.flat())
      case "DBSIZE":
        return Effect.map(replies, (sizes) => sizes.reduce((sum: number, size) => sum + Number(size), 0))
      case "SCAN":
      case "RANDOMKEY":
        return fail(
          refused(name, "on a Cluster a node knows only its own keys: query each of RedisTopology's primaries")
        )
      default:
        return send(command, ...args)
    }
  })
