/**
 * Rows that reject writes from former owners. Uses SQLite, or Postgres if `DATABASE_URL` is set.
 *
 *     node examples/fenced-sql.ts
 *     DATABASE_URL=postgres://localhost/shop REDIS_URL=redis://localhost:6379 node examples/fenced-sql.ts
 */
import { type Lease, Mutex } from "@effect-simba/core"
import * as SqlFence from "@effect-simba/core/SqlFence"
import { RedisMutex } from "@effect-simba/redis"
import { NodeRuntime } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { Config, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { RedisEnv } from "./shared/redisEnv.ts"
import * as Sqlite from "./shared/sqlite.ts"

/** Reads, computes and writes in one transaction, which fails at its start for a former owner. */
const add = (name: string, amount: number, lease: Lease.Lease) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ balance: number }>`SELECT balance FROM accounts WHERE name = ${name}`
    const balance = (row?.balance ?? 0) + amount
    yield* row === undefined
      ? sql`INSERT INTO accounts (name, balance) VALUES (${name}, ${balance})`
      : sql`UPDATE accounts SET balance = ${balance} WHERE name = ${name}`
    return balance
  }).pipe(SqlFence.withTransaction(lease))

const deposit = (name: string, amount: number) =>
  Mutex.withLock(`account:${name}`)((lease) => Effect.map(add(name, amount, lease), (balance) => ({ balance, lease })))

const program = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* SqlFence.createTable
  yield* sql`CREATE TABLE IF NOT EXISTS accounts (name VARCHAR(100) PRIMARY KEY, balance INTEGER NOT NULL)`

  const first = yield* deposit("alice", 100)
  const second = yield* deposit("alice", 11)
  yield* Effect.log(`alice has ${second.balance}, written with token ${second.lease.token}`)

  // The first owner was paused. Now it resumes and still believes that it holds the lease.
  yield* add("alice", 1, first.lease).pipe(
    Effect.catchTag("StaleToken", (error) => Effect.log(`refused: ${error.message}`))
  )
})

const SqlLive = Layer.unwrap(Effect.map(
  Config.option(Config.Redacted("DATABASE_URL")),
  Option.match({ onNone: () => Sqlite.layer(":memory:"), onSome: (url) => PgClient.layer({ url }) })
))

const MutexLive = Layer.provide(RedisMutex.layerFromEnv(), RedisEnv)

NodeRuntime.runMain(Effect.provide(program, Layer.merge(MutexLive, SqlLive)))
