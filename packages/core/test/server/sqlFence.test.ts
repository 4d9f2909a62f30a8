import { Mutex, SimbaError } from "@effect-simba/core"
import { type Bearer, FencingToken } from "@effect-simba/core/FencingToken"
import * as SqlFence from "@effect-simba/core/SqlFence"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Postgres from "../../../../examples/shared/postgresServer.ts"
import * as Sqlite from "../../../../examples/shared/sqlite.ts"

/** As large as tokens from Redis, which are microseconds since 1970. */
const token = (n: number) => FencingToken.make(1_795_227_205_908_240 + n)

const by = (resource: string, token: FencingToken): Bearer => ({ resource, token })

const balance = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ balance: number }>`SELECT balance FROM accounts WHERE name = 'alice'`
  return rows[0]!.balance
})

const setBalance = (value: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`UPDATE accounts SET balance = ${value} WHERE name = 'alice'`)

const setUp = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* SqlFence.createTable
  yield* sql`DROP TABLE IF EXISTS accounts`
  yield* sql`CREATE TABLE accounts (name VARCHAR(100) PRIMARY KEY, balance INTEGER NOT NULL)`
  yield* sql`INSERT INTO accounts (name, balance) VALUES ('alice', 100)`
  yield* sql`DELETE FROM simba_fences`
})

const contract = (name: string, Live: Layer.Layer<SqlClient.SqlClient, unknown>) =>
  describe(name, () => {
    it.layer(Live, { excludeTestServices: true })("a fence", (it) => {
      it.effect("accepts a first token, the same token again, and larger ones", () =>
        Effect.gen(function*() {
          yield* setUp
          for (const n of [1, 1, 2]) yield* SqlFence.withTransaction(by("alice", token(n)))(setBalance(n))
          assert.strictEqual(yield* balance, 2)
        }))

      it.effect("accepts a lease, and uses the lease's token and mutex name", () =>
        Effect.gen(function*() {
          yield* setUp
          const first = yield* Mutex.withLock("alice")((lease) => Effect.succeed(lease))
          yield* Mutex.withLock("alice")((lease) => SqlFence.withTransaction(lease)(setBalance(1)))
          const error = yield* Effect.flip(SqlFence.withTransaction(first)(setBalance(2)))
          assert.deepInclude(error, { _tag: "StaleToken", resource: "alice", token: first.token })
          assert.strictEqual(yield* balance, 1)
        }).pipe(Effect.provide(Mutex.layerMemory())))

      it.effect("rejects a smaller token before the body runs, with an error that names both tokens", () =>
        Effect.gen(function*() {
          yield* setUp
          yield* SqlFence.raise(by("alice", token(7)))
          let ran = false
          const body = Effect.andThen(Effect.sync(() => void (ran = true)), setBalance(0))
          const error = yield* Effect.flip(SqlFence.withTransaction(by("alice", token(6)))(body))
          assert.instanceOf(error, SimbaError.StaleToken)
          assert.isFalse(ran)
          assert.deepInclude(error, { resource: "alice", token: token(6), largest: token(7) })
          assert.strictEqual(yield* balance, 100)
          assert.strictEqual((yield* Effect.flip(SqlFence.raise(by("alice", token(6)))))._tag, "StaleToken")
          yield* SqlFence.withTransaction(by("alice", token(7)))(setBalance(7))
          assert.strictEqual(yield* balance, 7)
        }))

      it.effect("compares only tokens for the same resource, by its exact name", () =>
        Effect.gen(function*() {
          yield* setUp
          yield* SqlFence.raise(by("alice", token(7)))
          for (const other of ["bob", "Alice", "alice ", "älice"]) yield* SqlFence.raise(by(other, token(1)))
        }))

      it.effect("rolls back the body and the token if the body fails", () =>
        Effect.gen(function*() {
          yield* setUp
          const failing = Effect.andThen(setBalance(0), Effect.fail("no" as const))
          const error = yield* Effect.flip(SqlFence.withTransaction(by("alice", token(9)))(failing))
          assert.strictEqual(error, "no")
          assert.strictEqual(yield* balance, 100)
          yield* SqlFence.withTransaction(by("alice", token(8)))(setBalance(8))
          assert.strictEqual(yield* balance, 8)
        }))

      it.effect("makes a transaction with a larger token wait, then read the committed data", () =>
        Effect.gen(function*() {
          yield* setUp
          const began = yield* Deferred.make<void>()
          const goOn = yield* Deferred.make<void>()
          const add = (amount: number) => Effect.flatMap(balance, (value) => setBalance(value + amount))
          const first = yield* Effect.forkChild(
            Deferred.succeed(began, undefined).pipe(
              Effect.andThen(Deferred.await(goOn)),
              Effect.andThen(add(1)),
              SqlFence.withTransaction(by("alice", token(1)))
            )
          )
          yield* Deferred.await(began)
          const second = yield* Effect.forkChild(
            SqlFence.withTransaction(by("alice", token(2)))(add(10)).pipe(
              // A serializable transaction that had to wait is rejected, and succeeds on a retry
              Effect.retry({
                times: 1,
                while: (error) => error._tag === "SqlError" && error.reason._tag === "SerializationError"
              })
            ),
            { startImmediately: true }
          )
          // The second transaction waits for the row or for the connection. Neither addition may be lost.
          yield* Effect.sleep("100 millis")
          assert.isUndefined(second.pollUnsafe())
          yield* Deferred.succeed(goOn, undefined)
          yield* Fiber.joinAll([first, second])
          assert.strictEqual(yield* balance, 111)
        }))

      it.effect("is a savepoint inside another transaction", () =>
        Effect.gen(function*() {
          yield* setUp
          const sql = yield* SqlClient.SqlClient
          yield* SqlFence.raise(by("alice", token(5)))
          yield* sql.withTransaction(
            Effect.andThen(setBalance(1), Effect.ignore(SqlFence.withTransaction(by("alice", token(4)))(setBalance(0))))
          )
          assert.strictEqual(yield* balance, 1)
        }))

      it.effect("allows its table to be created several times concurrently", () =>
        Effect.gen(function*() {
          const sql = yield* SqlClient.SqlClient
          yield* sql`DROP TABLE IF EXISTS simba_fences`
          yield* Effect.all(Array.from({ length: 8 }, () => SqlFence.createTable), { concurrency: "unbounded" })
        }))
    })
  })

contract("SqlFence on SQLite", Sqlite.layer(":memory:"))
contract("SqlFence on Postgres", Postgres.layer)
contract(
  "SqlFence on Postgres, serializable",
  Layer.unwrap(
    Effect.map(Postgres.start, (url) => Postgres.client(url, { default_transaction_isolation: "serializable" }))
  )
)
