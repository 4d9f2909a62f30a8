/**
 * A handler that writes to Postgres while its data stream is on a real Redis. Each message changes the database once,
 * even if an old owner resumes late.
 */
import { StreamClient } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { assert, layer } from "@effect/vitest"
import { Cause, Deferred, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { createTables, handler } from "../../../../../examples/exactly-once.ts"
import * as Postgres from "../../../../../examples/shared/postgresServer.ts"
import { RedisServer, until } from "../../support/harness.ts"

const consumer = (name: string) =>
  Layer.build(
    Layer.unwrap(Effect.map(RedisServer, ({ url }) =>
      RedisStreams.layer({ service: "deposits", processName: name, gracePeriod: 0, redis: { url } })))
  )

layer(Layer.merge(RedisServer.layer, Postgres.layer), { excludeTestServices: true })("exactly once", (it) => {
  it.effect("no deposit is booked twice when an old owner resumes in the middle of a message", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      yield* createTables
      const sql = yield* SqlClient.SqlClient
      const balance = Effect.map(
        sql<{ balance: number }>`SELECT balance FROM accounts WHERE name = 'alice'`,
        ([row]) => row?.balance
      )
      const deposit = (amount: number) =>
        server.send("XADD", "deposits:eu", "*", "account", "alice", "amount", String(amount))
      const [a, b] = [yield* consumer("a"), yield* consumer("b")]
      yield* Effect.forEach([1, 2, 4], deposit)
      yield* StreamClient.announce("deposits:eu").pipe(Effect.provideContext(a))

      // The first owner hangs, uninterruptibly, before its transaction for the second deposit
      const [began, goOn, failed] = [
        Deferred.makeUnsafe<void>(),
        Deferred.makeUnsafe<void>(),
        Deferred.makeUnsafe<string>()
      ]
      const hanging = handler((amount) =>
        amount === 2 ? Effect.andThen(Deferred.succeed(began, undefined), Deferred.await(goOn)) : Effect.void
      )
      yield* StreamClient.run(
        Effect.uninterruptible(hanging).pipe(
          Effect.onError((cause) => Deferred.succeed(failed, Cause.pretty(cause)))
        )
      ).pipe(Effect.provideContext(a), Effect.forkChild)
      yield* Deferred.await(began)
      assert.strictEqual(yield* balance, 1)

      yield* StreamClient.seek("deposits:eu", "beginning", { force: true }).pipe(Effect.provideContext(b))
      yield* StreamClient.run(handler()).pipe(Effect.provideContext(b), Effect.forkChild)
      yield* until("the successor has booked the other deposits", Effect.map(balance, (amount) => amount === 7))
      yield* Deferred.succeed(goOn, undefined)
      assert.include(yield* Deferred.await(failed), "stale")
      yield* deposit(8)
      yield* until("the successor books the next deposit", Effect.map(balance, (amount) => amount === 15))
      // A refused transaction does not count as a failure of the message
      assert.deepStrictEqual(
        yield* StreamClient.deadMessages("deposits:eu").pipe(Effect.provideContext(b)),
        []
      )
    }))
})
