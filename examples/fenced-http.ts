/**
 * A web service that rejects requests from former owners. Each request carries the token of its lease in a header. If
 * the service has already seen a larger token, it responds with 412, as for an `If-Match` that no longer matches.
 *
 *     node examples/fenced-http.ts
 *     curl -i -X PUT http://localhost:3000/reports/2026-11 -H 'Fencing-Token: 7' -d 'first'
 *     curl -i -X PUT http://localhost:3000/reports/2026-11 -H 'Fencing-Token: 6' -d 'late'
 *     curl -i http://localhost:3000/reports/2026-11 -H 'Fencing-Token: 8'
 */
import { FencingToken } from "@effect-simba/core"
import * as SqlFence from "@effect-simba/core/SqlFence"
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Schema } from "effect"
import { HttpRouter, type HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { SqlClient, type SqlError } from "effect/sql"
import { HttpServerLive } from "./shared/httpServer.ts"
import * as Sqlite from "./shared/sqlite.ts"

const Headers = Schema.Struct({
  "fencing-token": Schema.FiniteFromString.pipe(Schema.decodeTo(FencingToken.FencingToken))
})

/** Runs the work on a report in a transaction, unless the report has already seen a larger token. */
const fenced = <R>(
  work: (
    month: string
  ) => Effect.Effect<HttpServerResponse.HttpServerResponse, SqlError.SqlError | HttpServerError.HttpServerError, R>
) =>
  Effect.gen(function*() {
    const { month = "" } = yield* HttpRouter.params
    const { "fencing-token": token } = yield* HttpServerRequest.schemaHeaders(Headers)
    return yield* SqlFence.withTransaction({ resource: `report:${month}`, token })(work(month))
  }).pipe(
    Effect.catchTags({
      StaleToken: (error) => Effect.succeed(HttpServerResponse.text(error.message, { status: 412 })),
      SchemaError: () => Effect.succeed(HttpServerResponse.text("the Fencing-Token header is missing", { status: 428 }))
    })
  )

// Reads carry the token too. Otherwise, a former owner could write between this owner's read and write
const get = HttpRouter.add(
  "GET",
  "/reports/:month",
  fenced((month) =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ text: string }>`SELECT text FROM reports WHERE month = ${month}`
      return HttpServerResponse.text(row?.text ?? "", { status: row === undefined ? 404 : 200 })
    })
  )
)

const put = HttpRouter.add(
  "PUT",
  "/reports/:month",
  fenced((month) =>
    Effect.gen(function*() {
      const text = yield* (yield* HttpServerRequest.HttpServerRequest).text
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        INSERT INTO reports (month, text) VALUES (${month}, ${text})
        ON CONFLICT (month) DO UPDATE SET text = excluded.text`
      return HttpServerResponse.empty()
    })
  )
)

const Tables = Layer.effectDiscard(Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* SqlFence.createTable
  yield* sql`CREATE TABLE reports (month VARCHAR(7) PRIMARY KEY, text VARCHAR(1000) NOT NULL)`
}))

const Live = HttpRouter.serve(Layer.merge(get, put)).pipe(
  Layer.provide(HttpServerLive),
  Layer.provide(Tables),
  Layer.provide(Sqlite.layer(":memory:"))
)

NodeRuntime.runMain(Layer.launch(Live))
