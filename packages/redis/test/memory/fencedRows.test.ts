/** A simulated fleet increments a counter in a SQL row under a mutex. Fencing must prevent lost updates. */
import { Mutex } from "@effect-simba/core"
import type { FencingToken } from "@effect-simba/core/FencingToken"
import * as SqlFence from "@effect-simba/core/SqlFence"
import { RedisMutex } from "@effect-simba/redis"
import { type Checker, Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as Sqlite from "../../../../examples/shared/sqlite.ts"
import { lock } from "../simulate/mutexPlan.ts"

interface Recipe {
  readonly read: (token: FencingToken) => Effect.Effect<number, unknown, SqlClient.SqlClient>
  /** Returns whether the database accepted the write. */
  readonly write: (token: FencingToken, value: number) => Effect.Effect<boolean, unknown, SqlClient.SqlClient>
}

const value = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ value: number }>`SELECT value FROM counters`
  return row!.value
})

const set = (value: number): Effect.Effect<unknown, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`UPDATE counters SET value = ${value}`)

/** Wrong: only the write compares the token, with a column in the row. */
const comparedAtTheWrite: Recipe = {
  read: () => value,
  write: (token, value) =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`
        UPDATE counters SET value = ${value}, fence = ${token} WHERE fence <= ${token} RETURNING value`
      return rows.length === 1
    })
}

/** Uses `SqlFence` to raise the token before the read. */
const fenced: Recipe = {
  read: (token) => Effect.andThen(SqlFence.raise({ resource: "counter", token }), value),
  write: (token, value) => Effect.as(SqlFence.withTransaction({ resource: "counter", token })(set(value)), true)
}

/** Raises the token in a column in the row before the read. */
const raisedBeforeTheRead: Recipe = {
  read: (token) =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`UPDATE counters SET fence = ${token} WHERE fence <= ${token} RETURNING value`
      return rows.length === 1 ? yield* value : yield* Effect.fail("stale" as const)
    }),
  write: comparedAtTheWrite.write
}

const noUpdateIsLost: Checker.Checker = {
  name: "no update is lost",
  start: (view) => ({
    onEvent: (event) => {
      if (event._tag !== "Note" || event.kind !== "counted") return
      const { before, read } = event.fields
      if (before !== read) view.violated(`${read} was read, but ${before} was overwritten`)
    }
  })
}

const runs = Effect.fnUntraced(function*(recipe: Recipe) {
  const context = yield* Effect.context<SqlClient.SqlClient>()
  const ask = Effect.runSyncWith(context)
  /** Runs a request when it reaches the database. Returns `undefined` if it fails. */
  const request = <A>(effect: Effect.Effect<A, unknown, SqlClient.SqlClient>) =>
    ask(Effect.catch(effect, () => Effect.undefined))

  const increment = (client: Simulation.Client, token: FencingToken) =>
    Effect.gen(function*() {
      // A request may be in flight longer than a lease
      const delay = () => (client.random() < 0.2 ? 6000 : 50) * client.random()
      const read = yield* client.outside(delay(), () => request(recipe.read(token)))
      if (read === undefined) return
      yield* Effect.sleep(20 + 1000 * client.random())
      yield* client.outside(delay(), ({ note }) => {
        const before = ask(value)
        const accepted = request(recipe.write(token, read + 1)) === true
        if (accepted) note("counted", { read, before })
      })
    })

  const program = (client: Simulation.Client) =>
    Effect.forever(
      Effect.andThen(
        Effect.ignore(Mutex.withLock("a")((lease) => increment(client, lease.token))),
        Effect.suspend(() => Effect.sleep(200 * client.random()))
      )
    ).pipe(
      Effect.provide(
        Mutex.layer({ ttl: "1 second", transition: "1500 millis" }).pipe(Layer.provide(RedisMutex.layerStore))
      )
    )

  return yield* Effect.forEach(Array.from({ length: 20 }, (_, index) => index + 1), (seed) =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* sql`DROP TABLE IF EXISTS counters`
      yield* sql`DROP TABLE IF EXISTS simba_fences`
      yield* sql`CREATE TABLE counters (value INTEGER NOT NULL, fence BIGINT NOT NULL)`
      yield* sql`INSERT INTO counters (value, fence) VALUES (0, 0)`
      yield* SqlFence.createTable
      const result = yield* Simulation.run({
        seed,
        clients: 3,
        program,
        lock,
        faults: Simulation.allFaults,
        enabled: ["pause", "kill"],
        checkers: [noUpdateIsLost]
      })
      const counted = result.events.filter((event) => event._tag === "Note" && event.kind === "counted").length
      return { counted, lost: result.violations.length, value: yield* value }
    }))
})

describe("three processes that increment a row despite pauses and slow requests", () => {
  it.layer(Sqlite.layer(":memory:"))("on SQLite", (it) => {
    it.effect("lose updates if only the write compares the token", () =>
      Effect.gen(function*() {
        const results = yield* runs(comparedAtTheWrite)
        assert.isAbove(results.filter(({ lost }) => lost > 0).length, 0)
      }))

    for (const [name, recipe] of Object.entries({ fenced, raisedBeforeTheRead })) {
      it.effect(`lose no updates if the token is raised before the read (${name})`, () =>
        Effect.gen(function*() {
          const results = yield* runs(recipe)
          for (const { counted, lost, value } of results) {
            assert.strictEqual(lost, 0)
            assert.isAbove(counted, 5)
            assert.strictEqual(value, counted)
          }
        }))
    }
  })
})
