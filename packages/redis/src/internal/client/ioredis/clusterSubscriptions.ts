/**
 * Subscriptions on a Cluster. There is one connection to each primary, because a script counts only the subscribers on
 * its own node. Used by `clusterDriver`.
 *
 * A channel with a hash tag is subscribed on its slot's primary, where its messages are published. All other channels
 * are subscribed on every primary. Because nodes forward messages to each other, this module drops duplicates.
 */
import { socketsRead } from "@effect-simba/core/MutexStore"
import type { BackendError } from "@effect-simba/core/SimbaError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Cluster, Redis as Client } from "ioredis"
import { hashTag, slot } from "../clusterSlot.ts"
import type * as Redis from "../effectRedis.ts"
import { backendError } from "../errors.ts"
import * as log from "../log.ts"
import * as causes from "./causes.ts"
import * as commands from "./commands.ts"
import { addressOf } from "./connection.ts"
import { Copies } from "./duplicateMessages.ts"
import * as listeners from "./listeners.ts"
import * as outages from "./outageLog.ts"
import * as channels from "./subscriptions.ts"
import { onWallClock } from "./wallClock.ts"

/** A primary and its subscriber connection. */
interface Home {
  readonly address: string
  readonly scope: Scope.Closeable
  readonly outage: outages.OutageLog
  readonly subscriptions: channels.Subscriptions
  /** Opens after the first successful subscription, and stays open: `subscriptions` restores a lost connection. */
  readonly reached: Latch.Latch
  /** Why the primary has not been reached yet. */
  problem: BackendError | undefined
  /** The last heartbeat received. */
  heartbeat: string
  missed: number
}

interface Entry {
  readonly channel: string
  readonly listener: (text: string | undefined) => void
  readonly attached: Map<Home, Scope.Closeable>
  readonly copies: Copies
  /** Unreachable homes. The entry is attached to each node once that node is reachable. */
  readonly awaited: Set<Home>
}

const heartbeatInterval = "3 seconds"
const heartbeatTimeout = "1 second"

const retry = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")])

export const make = Effect.fnUntraced(function*(
  cluster: Cluster,
  openAt: (node: Client) => Effect.Effect<Client, Redis.RedisError, Scope.Scope>,
  commandTimeout: Duration.Duration
): Effect.fn.Return<channels.Subscriptions, never, Scope.Scope> {
  const layerScope = yield* Effect.scope
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const changing = Semaphore.makeUnsafe(1)
  const homes = new Map<string, Home>()
  const entries = new Set<Entry>()
  const heartbeatChannel = `simba:beat:${yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)}`

  const attachOnce = (entry: Entry, home: Home) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function*() {
        // Check and attach in one step, because `listen` and `follow` may run concurrently
        if (entry.attached.has(home)) return
        const scope = Scope.forkUnsafe(home.scope)
        entry.attached.set(home, scope)
        const hear = (text: string | undefined) => {
          if (text === undefined) entry.copies.clear()
          if (text === undefined || entry.copies.isFirst(home.address, text, entry.attached.size)) entry.listener(text)
        }
        const exit = yield* Effect.exit(
          restore(Scope.provide(home.subscriptions.listen(entry.channel, hear), scope))
        )
        if (Exit.isSuccess(exit) && entries.has(entry) && homes.get(home.address) === home) return
        entry.attached.delete(home)
        yield* Scope.close(scope, exit)
        return yield* Effect.andThen(exit, Effect.fail(backendError("subscribe", causes.notConnected(home.address))))
      })
    )

  /** Attaches once the home is reachable. Then reports a gap, because messages may have been missed. */
  const attachLater = (entry: Entry, home: Home) =>
    Effect.suspend(() => {
      if (entry.awaited.has(home)) return Effect.void
      entry.awaited.add(home)
      return home.reached.await.pipe(
        Effect.andThen(Effect.retry(attachOnce(entry, home), { schedule: retry, while: () => entries.has(entry) })),
        Effect.andThen(Effect.sync(() => {
          if (!entries.has(entry)) return
          entry.copies.clear()
          entry.listener(undefined)
        })),
        Effect.ignore,
        Effect.ensuring(Effect.sync(() => entry.awaited.delete(home))),
        onWallClock,
        Effect.forkIn(home.scope)
      )
    })

  /**
   * The heartbeat is a home's first subscription. It is retried until the home is reachable, and all other
   * subscriptions wait for it.
   */
  const listenToHeartbeats = (home: Home) =>
    home.subscriptions.listen(heartbeatChannel, (text) => {
      home.heartbeat = text ?? home.heartbeat
    }).pipe(
      Scope.provide(home.scope),
      Effect.tapError((error) =>
        Effect.sync(() => {
          home.problem = error
          home.outage.lost(error)
        })
      ),
      Effect.retry(retry),
      Effect.andThen(Effect.sync(() => {
        home.problem = undefined
        home.outage.back()
        home.reached.openUnsafe()
      })),
      onWallClock
    )

  const open = Effect.fnUntraced(function*(node: Client): Effect.fn.Return<Home> {
    const address = addressOf(node)
    const scope = yield* Scope.fork(layerScope)
    const outage = yield* Scope.provide(outages.make("subscriber", () => address), scope)
    const subscriptions = yield* Scope.provide(channels.make(openAt(node), commandTimeout, outage), scope)
    const reached = Latch.makeUnsafe(false)
    const home: Home = { address, scope, outage, subscriptions, reached, problem: undefined, heartbeat: "", missed: 0 }
    homes.set(address, home)
    yield* Effect.forkIn(listenToHeartbeats(home), scope)
    return home
  })

  const homeOf = (node: Client) =>
    changing.withPermit(Effect.suspend(() => {
      const home = homes.get(addressOf(node))
      return home === undefined ? Effect.uninterruptible(open(node)) : Effect.succeed(home)
    }))

  const close = (home: Home) =>
    Effect.suspend(() => {
      if (homes.get(home.address) === home) homes.delete(home.address)
      for (const entry of entries) entry.attached.delete(home)
      return Scope.close(home.scope, Exit.void)
    })

  /** Returns the primaries on which to subscribe to a channel. */
  const primariesOf = (channel: string): ReadonlyArray<Client> => {
    const primaries = cluster.nodes("master")
    if (hashTag(channel) === undefined) return primaries
    const owner = cluster.slots[slot(channel)]?.[0]
    const known = primaries.find((node) => addressOf(node) === owner) ?? primaries[0]
    return known === undefined ? [] : [known]
  }

  const attachMissing = (entry: Entry) =>
    hashTag(entry.channel) !== undefined && entry.attached.size > 0
      ? Effect.void
      : Effect.forEach(primariesOf(entry.channel), (node) =>
        Effect.flatMap(homeOf(node), (home) =>
          entry.attached.has(home) ? Effect.void : attachLater(entry, home)), { discard: true })

  /** Disconnects from former primaries, and subscribes on the new ones. */
  const follow = Effect.suspend(() => {
    const current = new Set(cluster.nodes("master").map(addressOf))
    if (cluster.status !== "ready" || current.size === 0) return Effect.void
    const gone = [...homes.values()].filter(({ address }) => !current.has(address))
    return Effect.andThen(
      Effect.forEach(gone, close, { discard: true }),
      Effect.suspend(() => Effect.forEach([...entries], attachMissing, { discard: true }))
    )
  })

  yield* listeners.listen(cluster, { refresh: () => void run(Effect.forkIn(follow, layerScope)) })

  /**
   * Publishes a heartbeat and checks that every home receives it. Pings are not enough: a node that has left the
   * Cluster still replies to them, but no longer receives messages.
   */
  const heartbeat = Effect.gen(function*() {
    if (entries.size === 0) return
    cluster.refreshSlotsCache()
    const listening = [...homes.values()].filter(({ problem, subscriptions }) =>
      problem === undefined && subscriptions.problem() === undefined
    )
    const publisher = yield* Random.choice(cluster.nodes("master"))
    const text = String(yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER))
    yield* commands.node(publisher, commandTimeout)("PUBLISH", heartbeatChannel, text)
    yield* Effect.andThen(Effect.sleep(heartbeatTimeout), socketsRead)
    for (const home of listening) {
      home.missed = home.heartbeat === text ? 0 : home.missed + 1
      if (home.missed < 2 || homes.get(home.address) !== home) continue
      yield* log.warning(`The subscriber receives nothing at ${home.address}, which may have left the Cluster`)
      yield* close(home)
      yield* follow
    }
  })
  yield* Effect.forkScoped(
    onWallClock(
      Effect.forever(Effect.delay(
        Effect.catch(heartbeat, (error) => log.debug("A heartbeat through the Cluster failed", error)),
        heartbeatInterval
      ))
    )
  )

  const listen: channels.Subscriptions["listen"] = Effect.fnUntraced(function*(channel, listener) {
    const entry: Entry = { channel, listener, attached: new Map(), copies: new Copies(), awaited: new Set() }
    yield* Effect.acquireRelease(
      Effect.sync(() => entries.add(entry)),
      () =>
        Effect.suspend(() => {
          entries.delete(entry)
          return Effect.forEach([...entry.attached.values()], (scope) => Scope.close(scope, Exit.void), {
            discard: true
          })
        })
    )
    const wanted = yield* Effect.forEach(primariesOf(channel), homeOf)
    // Do not wait for a primary that is known to be unreachable
    const [attached, missing] = yield* Effect.partition(
      wanted,
      (home) =>
        Effect.mapError(
          home.problem === undefined ? attachOnce(entry, home) : Effect.fail(home.problem),
          (problem) => ({ home, problem })
        ),
      { concurrency: "unbounded" }
    )
    if (attached.length === 0) return yield* missing[0]?.problem ?? backendError("subscribe", causes.noPrimary)
    for (const { home } of missing) yield* attachLater(entry, home)
  })

  return {
    ...channels.queued(listen),
    problem: () => {
      for (const { problem, subscriptions } of homes.values()) {
        const found = problem ?? subscriptions.problem()
        if (found !== undefined) return found
      }
      return undefined
    }
  }
})
