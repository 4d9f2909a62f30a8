/** Provides Effect's `Redis` service and `Subscriber` for one client on a fake server. */
import { Subscriber } from "@effect-simba/core/Subscriber"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { Host } from "../simulation/host.ts"
import * as timers from "../simulation/timers.ts"
import { Connection, type Settings } from "./connection.ts"
import * as Redis from "./effectRedis.ts"
import { refusing } from "./refusals.ts"
import type { FakeServer } from "./server.ts"
import * as subscriptionsOf from "./subscriptions.ts"

export interface ClientOptions {
  readonly name: string
  readonly db: number
  readonly protocol: 2 | 3
  readonly commandTimeout: Duration.Duration
  readonly connectTimeout: Duration.Duration
}

const ownHost = Effect.gen(function*() {
  const random = yield* Random.Random
  const own: Host = {
    timers: yield* timers.make,
    random: () => random.nextDoubleUnsafe(),
    deliver: (run) => run()
  }
  return own
})

export const make = Effect.fnUntraced(function*(server: FakeServer, options: ClientOptions) {
  const host = (yield* Host) ?? (yield* ownHost)
  const settings: Settings = {
    server,
    host,
    client: options.name,
    db: options.db,
    protocol: options.protocol,
    commandTimeoutMillis: Duration.toMillis(options.commandTimeout),
    connectTimeout: Duration.toMillis(options.connectTimeout)
  }
  const commands = new Connection(settings, "commands")
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      // Build the layer even if the server is unreachable. Commands fail until the network lets the client through
      const timer = host.timers.at(host.timers.now() + settings.connectTimeout, () => resume(Effect.void))
      commands.onReady = () => {
        timer.cancel()
        resume(Effect.void)
      }
      commands.connect()
      return Effect.sync(timer.cancel)
    }),
    () => Effect.sync(() => commands.close())
  )
  const subscriptions = yield* subscriptionsOf.make(settings)
  const redis = yield* Redis.make({
    send: refusing(commands.send),
    subscribe: (channel, onMessage) =>
      subscriptions.listen(channel, (message) => {
        if (message !== undefined) onMessage({ channel, message })
      }).pipe(
        Effect.mapError((error) => new Redis.RedisError({ cause: error.cause })),
        Effect.as(Effect.never)
      ),
    connect: Effect.callback((resume) => {
      const reserved = new Connection(settings, "reserved")
      const timer = host.timers.at(host.timers.now() + settings.connectTimeout, () => {
        reserved.close()
        resume(Effect.fail(new Redis.RedisError({ cause: new Error("connect ETIMEDOUT") })))
      })
      const opened = () => {
        timer.cancel()
        resume(Effect.succeed({ send: reserved.send, close: Effect.sync(() => reserved.close()) }))
      }
      reserved.onReady = opened
      reserved.connect()
      return Effect.sync(() => {
        timer.cancel()
        reserved.close()
      })
    }),
    // Otherwise the pool's reclaim loop would run once for every minute that a test skips
    pool: { idleTimeout: Duration.infinity }
  })
  return Context.make(Redis.Redis, redis).pipe(
    Context.add(Subscriber, {
      subscribe: subscriptions.subscribe,
      listen: subscriptions.listen,
      countable: true,
      bound: undefined
    })
  )
})
