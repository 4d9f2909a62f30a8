/**
 * How to show that no combination of two faults breaks your own code. The explorer runs every schedule of a small
 * program with up to two faults: lost requests and replies, killed processes, and processes paused for longer than
 * their lease.
 */
import { Mutex } from "@effect-simba/core"
import * as RedisSimulation from "@effect-simba/redis/RedisSimulation"
import { type Checker, Simulation } from "@effect-simba/testkit"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"

/** A table row outside Redis, with the largest token that has written it. */
interface Account {
  readonly balance: number
  readonly token: number
}

const accountOf = (state: Map<string, unknown>) => (state.get("alice") ?? { balance: 0, token: 0 }) as Account

/** Correct: one transaction checks the token, reads and writes. */
const fenced = (client: Simulation.Client) =>
  Mutex.withLock("account:alice")(({ token }) =>
    client.outside(1, ({ note, state }) => {
      const { balance, token: largest } = accountOf(state)
      if (token < largest) return
      state.set("alice", { balance: balance + 1, token })
      note("balance", { of: balance + 1 })
      client.note("deposited")
    })
  )

/** Buggy: between the lease check and the write, it waits for the balance. */
const checked = (client: Simulation.Client) =>
  Effect.gen(function*() {
    const { ensure, token } = yield* Mutex.acquire("account:alice")
    yield* ensure
    const { balance } = yield* client.outside(1, ({ state }) => accountOf(state))
    yield* client.outside(1, ({ note, state }) => {
      state.set("alice", { balance: balance + 1, token })
      note("balance", { of: balance + 1 })
      client.note("deposited")
    })
  })

/** Requires that the account's balance equals the sum of the deposits. */
const nothingIsLost: Checker.Checker = {
  name: "no deposits are lost",
  start: (view) => {
    let deposits = 0
    let balance = 0
    return {
      onEvent: (event) => {
        if (event._tag !== "Note") return
        if (event.kind === "deposited") deposits++
        if (event.kind === "balance") balance = Number(event.fields["of"])
      },
      onConverged: () => {
        if (balance < deposits) view.violated(`${deposits} deposits, and a balance of ${balance}`)
      }
    }
  }
}

const explore = (deposit: typeof fenced | typeof checked) =>
  Effect.gen(function*() {
    const plan = yield* RedisSimulation.make<never>({
      seed: 1,
      clients: 2,
      program: (client) => Effect.ignore(Effect.andThen(client.ready, deposit(client))),
      mutexes: ["account:alice"],
      config: { ttl: "1 second", transition: "1500 millis" },
      duration: "5 seconds"
    })
    return yield* Simulation.explore({
      ...plan,
      checkers: [...plan.checkers, nothingIsLost],
      vary: { delays: [], cuts: false, pauses: [3000], setAside: [] }
    }, { deviations: 2 })
  })

it.effect("a fenced table loses no deposits in any schedule with two faults", () =>
  Effect.gen(function*() {
    const { first, isComplete, schedules } = yield* explore(fenced)
    assert.isUndefined(first, first && Simulation.report(first))
    assert.isTrue(isComplete)
    assert.isAbove(schedules, 500)
  }))

it.effect("one fault is enough to reveal a wait between the lease check and the write", () =>
  Effect.gen(function*() {
    const { first } = yield* explore(checked)
    // The report names the schedule, who held which lease, and what arrived when
    assert.include(first?.schedule, "paused", first && Simulation.report(first))
    assert.deepStrictEqual(first?.violations.map(({ checker }) => checker), [nothingIsLost.name])
  }))
