/**
 * Interrupts work when its lease is lost, and protects a table with fencing tokens.
 *
 *     node examples/with-lock.ts
 *
 * Needs Node 22.19 or newer and a clone of this repository.
 */
import { Mutex } from "@effect-simba/core"
import { NodeRuntime } from "@effect/platform-node"
import { Context, Effect, Layer, Schema } from "effect"

export class Superseded extends Schema.TaggedError<Superseded>()("Superseded", { token: Schema.Int }) {}

/** Stands for a table with a column `fence`. */
export class Balances extends Context.Service<Balances, {
  readonly set: (account: string, balance: number, token: number) => Effect.Effect<void, Superseded>
}>()("example/Balances") {
  static readonly layer = Layer.sync(Balances, () => {
    const rows = new Map([["alice", { balance: 100, fence: 0 }]])
    return {
      set: (account, balance, token) =>
        Effect.suspend(() => {
          // UPDATE balances SET balance = :balance, fence = :token WHERE account = :account AND fence <= :token
          const row = rows.get(account)
          if (row === undefined || row.fence > token) return new Superseded({ token })
          rows.set(account, { balance, fence: token })
          return Effect.void
        })
    }
  })
}

/**
 * Settles an account in one process at a time. If the lease is lost, the work is interrupted and fails with
 * `LeaseLost`.
 */
export const settle = Mutex.withLock("settlement", { timeout: "10 seconds" })((lease) =>
  Effect.gen(function*() {
    const balances = yield* Balances
    yield* Effect.sleep("2 seconds")
    // The table refuses this write even after a pause of minutes, once the next owner has written its own token
    yield* balances.set("alice", 80, lease.token)
    return lease.token
  })
)

export const program = settle.pipe(
  Effect.tap((token) => Effect.log(`settled with token ${token}`)),
  Effect.retry({ times: 3, while: (error) => error._tag === "LeaseLost" }),
  Effect.catchTag("Superseded", (error) => Effect.log(`somebody with a larger token than ${error.token} was faster`))
)

const Live = Layer.merge(
  Balances.layer,
  Mutex.layerMemory({ ttl: "10 seconds", transition: "6 seconds" })
)

if (import.meta.main) NodeRuntime.runMain(Effect.provide(program, Live))
