/**
 * Protects SQL data from former owners of a mutex, in transactions with Effect's `SqlClient`.
 *
 * An owner that was paused past its deadline may resume and write even though the mutex already has another owner. Each
 * grant has a larger token than the previous one. The `simba_fences` table stores each resource's largest token, and a
 * transaction with a smaller one fails with `StaleToken` before it reads or writes. The resource's row in that table
 * stays locked until the transaction ends, so transactions on one resource run one after another.
 *
 * Leases of data streams work the same way. `docs/data-streams.md` shows how such a lease helps to process each message
 * exactly once.
 *
 * Supports Postgres, SQLite, MySQL and MariaDB. Import this module by its path: the package's index does not export it,
 * so that only its users load `effect/sql`.
 *
 * **Example** (Protecting a balance from former owners)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as SqlFence from "@effect-simba/core/SqlFence"
 * import { Effect } from "effect"
 * import { SqlClient } from "effect/sql"
 *
 * const deposit = (account: string, amount: number) =>
 *   Mutex.withLock(`account:${account}`)((lease) =>
 *     Effect.gen(function*() {
 *       const sql = yield* SqlClient.SqlClient
 *       yield* sql`UPDATE accounts SET balance = balance + ${amount} WHERE name = ${account}`
 *     }).pipe(SqlFence.withTransaction(lease))
 *   )
 * ```
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type Bearer, FencingToken, resourceOf } from "./FencingToken.ts"
import { StaleToken } from "./SimbaError.ts"

/** The client without its name transformations. */
const client = Effect.map(SqlClient, (sql) => sql.withoutTransforms())

/**
 * Creates the `simba_fences` table if it does not exist.
 *
 * **When to use**
 *
 * Run it when the program starts, or in a migration.
 *
 * **Details**
 *
 * The table has one row per resource, with its largest token as a `BIGINT`. Deleting a row forgets the resource's
 * token.
 *
 * **Example** (Creating the table at startup)
 *
 * ```ts
 * import * as SqlFence from "@effect-simba/core/SqlFence"
 * import { Layer } from "effect"
 *
 * const FencesLive = Layer.effectDiscard(SqlFence.createTable)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const createTable: Effect.Effect<void, SqlError, SqlClient> = Effect.flatMap(client, (sql) => {
  // MySQL compares text ignoring case and trailing spaces, but compares bytes exactly
  const text = sql.onDialectOrElse({ mysql: () => sql`VARBINARY(767)`, orElse: () => sql`TEXT` })
  return sql`
    CREATE TABLE IF NOT EXISTS simba_fences (
      resource ${text} NOT NULL PRIMARY KEY,
      token BIGINT NOT NULL CHECK (token BETWEEN 1 AND 9007199254740991)
    )`
}).pipe(
  // If two clients create the table at the same time, one of them fails on Postgres
  Effect.retry({ times: 1 }),
  Effect.asVoid
)

/**
 * Raises the resource's token. Transactions with smaller tokens fail from then on.
 *
 * **When to use**
 *
 * Use it with a new lease before you read data that you will write much later, in another transaction.
 *
 * **Details**
 *
 * Fails with `StaleToken` if the resource has seen a larger token. Inside a transaction, the token takes effect when
 * that transaction commits.
 *
 * **Example** (A long computation between read and write)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as SqlFence from "@effect-simba/core/SqlFence"
 * import { Effect } from "effect"
 *
 * const rebuild = (
 *   read: Effect.Effect<string>,
 *   transform: (text: string) => Effect.Effect<string>,
 *   write: (text: string) => Effect.Effect<void>
 * ) =>
 *   Mutex.withLock("index")((lease) =>
 *     SqlFence.raise(lease).pipe(
 *       Effect.andThen(read),
 *       Effect.flatMap(transform),
 *       Effect.flatMap((text) => SqlFence.withTransaction(lease)(write(text)))
 *     )
 *   )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const raise = (bearer: Bearer): Effect.Effect<void, StaleToken | SqlError, SqlClient> =>
  Effect.gen(function*() {
    const { token } = bearer
    const resource = resourceOf(bearer)
    const sql = yield* client
    const [row] = yield* sql.onDialectOrElse({
      mysql: () =>
        Effect.andThen(
          sql`
            INSERT INTO simba_fences (resource, token) VALUES (${resource}, ${token})
            ON DUPLICATE KEY UPDATE token = GREATEST(token, ${token})`,
          sql`SELECT token FROM simba_fences WHERE resource = ${resource} FOR UPDATE`
        ),
      orElse: () =>
        sql`
          INSERT INTO simba_fences (resource, token) VALUES (${resource}, ${token})
          ON CONFLICT (resource) DO UPDATE
          SET token = CASE WHEN simba_fences.token > excluded.token THEN simba_fences.token ELSE excluded.token END
          RETURNING token`
    })
    // Drivers return a BIGINT as a number, a bigint or a string. A missing row is a defect, because nothing was fenced
    const largest = FencingToken.make(Number(row?.["token"]))
    if (largest > token) return yield* new StaleToken({ resource, token, largest })
  })

/**
 * Runs an effect in a transaction that fails if the resource has seen a larger token.
 *
 * **When to use**
 *
 * Use it for all transactions that write data protected by the mutex.
 *
 * **Details**
 *
 * The transaction first raises the resource's token, then runs the body, so the data that the body reads stays valid
 * until the commit. If the body fails, everything is rolled back. Use one resource and one mutex for data that belongs
 * together: tokens from different mutexes cannot be compared.
 *
 * **Gotchas**
 *
 * Read inside the body: data that you read earlier may be stale, unless `raise` came first. Inside an outer
 * transaction, this is a savepoint, and on MySQL the body sees the state at the outer transaction's first read.
 *
 * On Postgres, at isolation levels above `READ COMMITTED`, a transaction that had to wait for another fails with an
 * `SqlError` whose reason is `SerializationError`. Retry it.
 *
 * **Example** (Reading, computing and writing)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as SqlFence from "@effect-simba/core/SqlFence"
 * import { Effect } from "effect"
 * import { SqlClient } from "effect/sql"
 *
 * const addInterest = Effect.gen(function*() {
 *   const sql = yield* SqlClient.SqlClient
 *   const [row] = yield* sql<{ balance: number }>`SELECT balance FROM accounts WHERE name = 'alice'`
 *   yield* sql`UPDATE accounts SET balance = ${Math.round(row!.balance * 1.02)} WHERE name = 'alice'`
 * })
 *
 * const program = Mutex.withLock("alice")((lease) => SqlFence.withTransaction(lease)(addInterest))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withTransaction = (bearer: Bearer) =>
<A, E, R>(
  body: Effect.Effect<A, E, R>
): Effect.Effect<A, E | StaleToken | SqlError, R | SqlClient> =>
  SqlClient.use((sql) => sql.withTransaction(Effect.andThen(raise(bearer), body)))
