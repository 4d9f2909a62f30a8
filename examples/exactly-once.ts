/**
 * Books deposits from a data stream into a database exactly once. The transaction that books a deposit also stores the
 * position in the stream. The lease's token fences out former owners. Uses SQLite, or Postgres if `DATABASE_URL` is
 * set.
 *
 *     node examples/exactly-once.ts
 *     DATABASE_URL=postgres://localhost/shop REDIS_URL=redis://localhost:6379 node examples/exactly-once.ts
 */
import * as SqlFence from "@effect-simba/core/SqlFence"
import { StreamClient, StreamLease, StreamMessages } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { NodeRuntime } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { Config, Deferred, Effect, Layer, Option, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { SqlClient } from "effect/sql"
import { RedisEnv } from "./shared/redisEnv.ts"
import * as Sqlite from "./shared/sqlite.ts"

const Deposit = Schema.Struct({ account: Schema.String, amount: Schema.FiniteFromString })

export const createTables = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* SqlFence.createTable
  yield* sql`CREATE TABLE IF NOT EXISTS accounts (name VARCHAR(100) PRIMARY KEY, balance INTEGER NOT NULL)`
  yield* sql`CREATE TABLE IF NOT EXISTS positions (stream VARCHAR(100) PRIMARY KEY, message VARCHAR(50) NOT NULL)`
})

/** Called inside the transaction that `handler` opens. */
const book = (stream: string, { id, value }: StreamMessages.Message<typeof Deposit.Type>) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      INSERT INTO accounts (name, balance) VALUES (${value.account}, ${value.amount})
      ON CONFLICT (name) DO UPDATE SET balance = accounts.balance + excluded.balance`
    yield* sql`
      INSERT INTO positions (stream, message) VALUES (${stream}, ${id})
      ON CONFLICT (stream) DO UPDATE SET message = excluded.message`
  })

/** `before` stands for work that takes time before the transaction begins. */
export const handler = (before: (amount: number) => Effect.Effect<void> = () => Effect.void) =>
  Effect.gen(function*() {
    const lease = yield* StreamLease.StreamLease
    const sql = yield* SqlClient.SqlClient
    // From now on, no former owner can change the position that the next statement reads
    yield* SqlFence.raise(lease)
    const [row] = yield* sql<{ message: string }>`SELECT message FROM positions WHERE stream = ${lease.stream}`
    yield* StreamMessages.process(
      Deposit,
      (message) =>
        Effect.andThen(before(message.value.amount), SqlFence.withTransaction(lease)(book(lease.stream, message))),
      {
        after: Option.fromUndefinedOr(row?.message),
        until: ({ value }) => value.amount === 0
      }
    )
  })

const service = `deposits-${process.pid}`
const stream = `${service}:eu`

const program = Effect.gen(function*() {
  yield* createTables
  const { send } = yield* Redis
  for (const amount of [40, 1, 1, 0]) {
    yield* send("XADD", stream, "*", "account", "bob", "amount", String(amount))
  }
  yield* StreamClient.announce(stream)
  const consume = Effect.gen(function*() {
    const done = yield* Deferred.make<void>()
    const consumer = StreamClient.run(Effect.andThen(handler(), Deferred.succeed(done, undefined)))
    yield* Effect.raceFirst(consumer, Deferred.await(done))
  })
  yield* consume
  // Replay all messages. The handler skips them because of the position in the database
  yield* StreamClient.seek(stream, "beginning", { force: true })
  yield* StreamClient.announce(stream)
  yield* consume
  const sql = yield* SqlClient.SqlClient
  const [bob] = yield* sql<{ balance: number }>`SELECT balance FROM accounts WHERE name = 'bob'`
  yield* Effect.log(`bob has ${bob!.balance}`)
})

const SqlLive = Layer.unwrap(Effect.map(
  Config.option(Config.Redacted("DATABASE_URL")),
  Option.match({ onNone: () => Sqlite.layer(":memory:"), onSome: (url) => PgClient.layer({ url }) })
))

const StreamsLive = Layer.provide(RedisStreams.layerFromEnv({ service, enableEvents: true }), RedisEnv)

if (import.meta.main) NodeRuntime.runMain(Effect.provide(program, Layer.merge(StreamsLive, SqlLive)))
