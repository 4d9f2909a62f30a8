/**
 * Effect's `SqlClient` on Node's built-in SQLite, because Effect's own driver has no release for this version of
 * Effect. Node's SQLite is synchronous: while a statement waits for another process's lock (at most `timeout`), this
 * process cannot renew its leases. If several processes share the database, keep `timeout` below half of the shortest
 * lease.
 */
import { Effect, Layer, Semaphore, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError, Statement } from "effect/sql"
import { DatabaseSync, type SQLInputValue } from "node:sqlite"

/** Opens one connection to a file, or to an in-memory database if `file` is `:memory:`. */
export const layer = (file: string): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.gen(function*() {
      const attempt = <A>(operation: string, act: () => A) =>
        Effect.try({
          try: act,
          catch: (cause) => new SqlError.SqlError({ reason: SqlError.classifySqliteError(cause, { operation }) })
        })
      const database = yield* Effect.acquireRelease(
        attempt("connect", () => new DatabaseSync(file, { timeout: 5000 })),
        (database) => Effect.sync(() => database.close())
      )
      const execute = (sql: string, params: ReadonlyArray<unknown>) =>
        attempt("execute", () => database.prepare(sql).all(...params as ReadonlyArray<SQLInputValue>))
      const values = (sql: string, params: ReadonlyArray<unknown>) =>
        Effect.map(execute(sql, params), (rows) => rows.map((row) => Object.values(row)))
      const connection: SqlConnection.Connection = {
        execute,
        executeRaw: execute,
        executeUnprepared: execute,
        executeValues: values,
        executeValuesUnprepared: values,
        executeStream: (sql, params) => Stream.fromIterableEffect(execute(sql, params))
      }
      return yield* SqlClient.make({
        ...SqlClient.makeSqliteAcquirers({
          connection: Effect.succeed(connection),
          semaphore: yield* Semaphore.make(1),
          isTransaction: () => database.isTransaction
        }),
        compiler: Statement.makeCompilerSqlite(),
        driver: "node:sqlite",
        spanAttributes: [["db.system.name", "sqlite"]]
      })
    })
  ).pipe(Layer.provide(Reactivity.layer))
