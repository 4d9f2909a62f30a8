/** Tests that each mutex checker finds its violation in a tailored history, and none in a correct one. */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { Checker, Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { Redis } from "effect/persistence/Redis"

type Program = Effect.Effect<void, unknown, Redis | Subscriber | Scope.Scope>

const send = (...args: readonly [command: string, ...args: ReadonlyArray<string>]) =>
  Effect.asVoid(Redis.use((redis) => redis.send(...args)))

/** A lock made of plain commands: `SET`, `DEL`, and `ZADD` to wait. Ids of foreign contenders start with `foreign`. */
const lock: Simulation.LockModel = {
  resources: ["m"],
  ownerKey: () => "owner",
  fencedKey: () => "fenced",
  asked: (args) =>
    args[0] === "SET" && args[1] === "owner"
      ? [{ resource: "m", id: args[2]! }]
      : args[0] === "ZADD"
      ? { resource: "m", id: args[3]! }
      : undefined,
  queued: (args) => args[0] === "ZADD" ? [{ resource: "m", id: args[3]!, place: Number(args[2]) }] : undefined,
  released: (args) => args[0] === "DEL" && args.length === 3 ? { resource: "m", id: args[2]! } : undefined,
  channel: (_, id) => `channel:${id}`
}

const take = (id: string, millis = 10_000) => send("SET", "owner", id, "PX", String(millis))
const unlock = (id: string) => send("DEL", "owner", id)

/** Returns the violations that a checker finds in a client's history. */
const said = (
  checker: Checker.Checker,
  program: (client: Simulation.Client) => Program,
  model: Partial<Simulation.LockModel> = {}
) =>
  Effect.map(
    Simulation.run({
      seed: 1,
      clients: 1,
      program: (client) => Effect.andThen(Effect.orDie(program(client)), Effect.never),
      lock: { ...lock, ...model },
      checkers: [checker],
      duration: "60 seconds"
    }),
    ({ violations }) => violations.map(({ message }) => message).join()
  )

const finds = (
  checker: Checker.Checker,
  what: RegExp,
  program: (client: Simulation.Client) => Program,
  model?: Partial<Simulation.LockModel>
) => Effect.map(said(checker, program, model), (text) => assert.match(text, what))

/** Like `said`, but with occasional server clock steps. */
const saidUnder = (by: number, program: (client: Simulation.Client) => Program) =>
  Effect.map(
    Simulation.run({
      seed: 1,
      clients: 1,
      program: (client) => Effect.andThen(Effect.orDie(program(client)), Effect.never),
      lock,
      checkers: [Checker.rules.ensureIsTruthful],
      faults: { serverClockStep: { every: 1000, by: [by, by] } },
      enabled: ["serverClockStep"],
      duration: "60 seconds"
    }),
    ({ violations }) => violations.map(({ message }) => message).join()
  )

const accepts = (
  checker: Checker.Checker,
  program: (client: Simulation.Client) => Program,
  model?: Partial<Simulation.LockModel>
) => Effect.map(said(checker, program, model), (text) => assert.strictEqual(text, ""))

describe("workNeverOverlaps", () => {
  const first = { resource: "m", id: "a" }
  const second = { resource: "m", id: "b" }

  it.effect.each([["other work", second], ["work under the same lease", first]] as const)(
    "finds work that starts during %s",
    ([, other]) =>
      finds(
        Checker.rules.workNeverOverlaps,
        new RegExp(`^${other.id} starts work on m while a has worked on it`),
        ({ note }) =>
          Effect.gen(function*() {
            yield* take("a")
            note("begin", first)
            yield* Effect.sleep("1 second")
            note("begin", other)
          })
      )
  )

  const overlapping = (last: string) => ({ note }: Simulation.Client) =>
    Effect.gen(function*() {
      yield* take("a")
      note("begin", first)
      note("step", first)
      yield* Effect.sleep("1 second")
      note("begin", second)
      note(last, first)
    })

  it.effect("finds work that continues after other work has started", () =>
    finds(Checker.rules.workNeverOverlaps, /^b starts work on m while a has worked on it/, overlapping("step")))

  it.effect("accepts work that does not continue, however late it is interrupted", () =>
    accepts(Checker.rules.workNeverOverlaps, overlapping("stopped")))

  it.effect("accepts running finalizers and work on other resources", () =>
    accepts(Checker.rules.workNeverOverlaps, ({ note }) =>
      Effect.gen(function*() {
        yield* take("a")
        note("begin", first)
        note("begin", { resource: "n", id: "c" })
        yield* Effect.sleep("1 second")
        note("stopped", first)
        note("begin", second)
        yield* Effect.sleep("1 second")
        note("end", first)
      })))
})

describe("ensureIsTruthful", () => {
  const pass = ({ note }: Simulation.Client) => Effect.sync(() => note("ensured", { resource: "m", id: "a", left: 1 }))
  const forced = (args: ReadonlyArray<string>) =>
    args[0] === "DEL" && args.length === 2 ? { resource: "m", id: "a" } : undefined

  it.effect("finds a client that relies on a lease that the server no longer knows", () =>
    finds(
      Checker.rules.ensureIsTruthful,
      /^a passed ensure while m belonged to nobody/,
      (client) =>
        take("a", 1000).pipe(
          Effect.andThen(pass(client)),
          Effect.andThen(Effect.sleep("2 seconds")),
          Effect.andThen(pass(client))
        )
    ))

  it.effect("accepts a forcibly released lease, but only until it would have expired", () =>
    Effect.gen(function*() {
      const history = (left: number) => (client: Simulation.Client) =>
        Effect.andThen(take("a", 5000), send("DEL", "owner")).pipe(
          Effect.andThen(Effect.sleep(left)),
          Effect.andThen(pass(client))
        )
      yield* accepts(Checker.rules.ensureIsTruthful, history(4000), { forced })
      yield* finds(Checker.rules.ensureIsTruthful, /^a passed ensure while m belonged to nobody/, history(6000), {
        forced
      })
    }))

  it.effect("accepts the consequences of a forward server clock step, but not of a backward one", () =>
    Effect.gen(function*() {
      const history = (client: Simulation.Client) =>
        take("a", 1000).pipe(Effect.andThen(Effect.sleep("50 seconds")), Effect.andThen(pass(client)))
      assert.strictEqual(yield* saidUnder(1, history), "")
      assert.match(yield* saidUnder(-1, history), /^a passed ensure while m belonged to nobody/)
    }))
})

describe("writesAreFenced", () => {
  const write = (client: Simulation.Client, token: number, accepted: (observed: number) => boolean) =>
    Effect.suspend(() => {
      client.note("writing", { resource: "m", id: "a", write: token })
      return client.outside(1, ({ note, state }) => {
        const took = accepted(state.get("m") as number ?? 0)
        if (took) state.set("m", token)
        note("written", { resource: "m", id: "a", write: token, token, accepted: took ? 1 : 0 })
      })
    })

  it.effect("finds a smaller token after a larger one in Redis", () =>
    finds(
      Checker.rules.writesAreFenced,
      /m accepted a write with token 4 after one with 5/,
      () => Effect.andThen(send("SET", "fenced", "5"), send("SET", "fenced", "4"))
    ))

  it.effect("finds an external resource that accepts everything", () =>
    finds(
      Checker.rules.writesAreFenced,
      /the resource m accepted a write with token 4 after one with 5/,
      (client) => Effect.andThen(write(client, 5, () => true), write(client, 4, () => true))
    ))

  it.effect("finds a write that was rejected while its lease was valid", () =>
    finds(
      Checker.rules.writesAreFenced,
      /a write of a was stale for m/,
      (client) =>
        Effect.andThen(
          take("a"),
          Effect.andThen(write(client, 5, () => true), write(client, 4, (observed) => observed <= 4))
        )
    ))

  it.effect("accepts rejected writes from previous holders, and growing tokens", () =>
    accepts(Checker.rules.writesAreFenced, (client) =>
      Effect.gen(function*() {
        yield* send("SET", "fenced", "5")
        yield* send("SET", "fenced", "6")
        yield* write(client, 5, () => true)
        yield* write(client, 4, (observed) => observed <= 4)
        yield* write(client, 6, () => true)
      })))

  it.effect("finds a late write that arrives after its sender has given up", () =>
    finds(
      Checker.rules.writesAreFenced,
      /accepted a write with token 4 after one with 5/,
      (client) =>
        Effect.gen(function*() {
          yield* Effect.forkChild(write(client, 4, () => true).pipe(Effect.timeoutOption("1 millis")))
          yield* Effect.sleep("0.5 millis")
          yield* client.outside(0, ({ note, state }) => {
            state.set("m", 5)
            note("written", { resource: "m", id: "b", write: 5, token: 5, accepted: 1 })
          })
        })
    ))
})

describe("noFlapping", () => {
  const checker = Checker.rules.noFlapping({ recovery: "1 second" })

  it.effect("finds a grant that its owner never used", () =>
    finds(
      checker,
      /m was granted to a, which never used it; consecutive wasted grants without a reason: 1/,
      () => take("a", 100)
    ))

  it.effect("finds too many consecutive unused grants", () =>
    Effect.gen(function*() {
      const twice = (client: Simulation.Client, between: string | undefined) =>
        Effect.forEach(["a", "b"], (id, index) =>
          Effect.gen(function*() {
            if (index === 1 && between !== undefined) {
              yield* take(between, 100)
              client.note("granted", { resource: "m", id: between })
              yield* Effect.sleep("1 second")
            }
            yield* take(id, 100)
            yield* Effect.sleep("1 second")
          }), { discard: true })
      const lenient = Checker.rules.noFlapping({ recovery: "1 second", bound: 1 })
      yield* finds(
        lenient,
        /granted to b, which never used it; consecutive wasted grants without a reason: 2/,
        (client) => twice(client, undefined)
      )
      yield* accepts(lenient, (client) => twice(client, "c"))
    }))

  it.effect("accepts grants that were used or released", () =>
    accepts(checker, ({ note }) =>
      Effect.gen(function*() {
        yield* take("a", 100)
        note("granted", { resource: "m", id: "a" })
        yield* Effect.sleep("1 second")
        yield* take("b")
        yield* unlock("b")
      })))
})

describe("servedInTurn", () => {
  const checker = (
    options: { readonly notice?: number; readonly race?: number; readonly foreignPlace?: () => number } = {}
  ) =>
    Checker.rules.servedInTurn({
      barges: 2,
      turn: "5 seconds",
      recovery: "1 second",
      foreign: (id) => id.startsWith("foreign"),
      ...options
    })
  const listening = { channel: () => "all" }
  const wait = (...ids: ReadonlyArray<string>) =>
    Effect.andThen(
      Effect.flatMap(Subscriber, (subscriber) => subscriber.subscribe("all")),
      Effect.forEach(ids, (id, index) => send("ZADD", "queue", String(index + 1), id), { discard: true })
    )
  const barge = (count: number, pause = "1 second" as const) =>
    Effect.forEach(Array.from({ length: count }, (_, index) => `foreign${index}`), (id) =>
      Effect.gen(function*() {
        yield* take(id)
        yield* Effect.sleep("1 second")
        yield* unlock(id)
        yield* Effect.sleep(pause)
      }), { discard: true })

  it.effect("finds a waiter that is repeatedly passed over", () =>
    finds(
      checker(),
      /^3 others were granted m since .* when 0 were ahead of a/,
      () => Effect.andThen(wait("a"), barge(3)),
      listening
    ))

  it.effect("ignores a waiter between its client's report of a failed wait and its next request", () =>
    Effect.gen(function*() {
      const failed = ({ note }: Simulation.Client) => Effect.andThen(wait("a"), Effect.sync(() => note("failed")))
      yield* accepts(checker(), (client) => Effect.andThen(failed(client), barge(3)), listening)
      yield* finds(
        checker(),
        /^3 others were granted m since .* when 0 were ahead of a/,
        (client) => Effect.andThen(failed(client), Effect.andThen(wait("a"), barge(4))),
        listening
      )
    }))

  it.effect("does not ignore a waiter whose client gives up without a fault", () =>
    finds(
      checker(),
      /^3 others were granted m since .* when 0 were ahead of a/,
      (client) =>
        Effect.andThen(
          wait("a"),
          Effect.andThen(Effect.sync(() => client.note("waited", { resource: "m", wait: "1" })), barge(3))
        ),
      listening
    ))

  it.effect("counts foreign contenders only if they would queue behind the waiter", () =>
    Effect.gen(function*() {
      const history = () => Effect.andThen(Effect.andThen(wait("a"), barge(3)), take("a"))
      yield* accepts(checker({ foreignPlace: () => 0 }), history, listening)
      yield* finds(checker({ foreignPlace: () => 2 }), /^3 others were granted m/, history, listening)
    }))

  it.effect("does not count waiters ahead in the queue", () =>
    Effect.gen(function*() {
      const inTurn = Effect.andThen(
        wait("a", "b"),
        Effect.forEach(["foreign1", "foreign2", "a", "b"], (id) =>
          Effect.gen(function*() {
            yield* take(id)
            yield* Effect.sleep("1 second")
            yield* unlock(id)
          }), { discard: true })
      )
      yield* accepts(checker(), () => inTurn, listening)
    }))

  it.effect("finds a waiter for a mutex that is never released", () =>
    finds(
      checker(),
      /^a has waited for m for .* while others had 0 turns/,
      () => Effect.andThen(take("foreign1", 60_000), wait("a")),
      listening
    ))

  /**
   * Contenders take the mutex `count` times. Each time, the notified waiter sends its request `late` milliseconds
   * later.
   */
  const races = (count: number, late: number | undefined, by = "foreign") =>
    Effect.forEach(Array.from({ length: count }, (_, index) => `${by}${index}`), (id) =>
      Effect.gen(function*() {
        yield* take(id)
        if (late !== undefined) {
          yield* Effect.sleep(late)
          yield* send("ZADD", "queue", "1", "a")
        }
        yield* Effect.sleep("100 millis")
        yield* unlock(id)
      }), { discard: true })

  it.effect("does not count races lost by the notified waiter", () =>
    accepts(checker({ race: 10 }), () => Effect.andThen(wait("a"), races(30, 1)), listening))

  it.effect.each(
    [
      [
        "a barge without a race",
        races(5, undefined),
        /^3 others were granted m since .* when 0 were ahead of a/
      ],
      ["a waiter that always comes too late", races(5, 20), /^3 others were granted m since .* when 0 were ahead of a/],
      [
        "a waiter that is repeatedly passed by others",
        races(5, 1, "b"),
        /^3 others were granted m since .* ahead of a/
      ],
      [
        "a waiter that never wins a race",
        races(60, 1),
        /^a waits for m, and a and others lost 41 consecutive races for it/
      ]
    ] as const
  )(
    "finds %s",
    ([, barging, what]) => finds(checker({ race: 10 }), what, () => Effect.andThen(wait("a"), barging), listening)
  )

  it.effect("does not count races against an in-flight message", () =>
    accepts(checker({ notice: 2000 }), () =>
      Effect.andThen(wait("a"), barge(5)).pipe(
        Effect.andThen(take("a"))
      ), listening))
})

describe("inOrderWithinLines", () => {
  const ask = (note: Simulation.Client["note"], wait: string, more = {}) =>
    note("waiting", { resource: "m", wait, ...more })

  it.effect("finds a waiter that is served before an earlier one in its process", () =>
    finds(Checker.rules.inOrderWithinLines, /^c1#1\/2 was served before c1#1\/1/, ({ note }) =>
      Effect.gen(function*() {
        ask(note, "1")
        ask(note, "2")
        note("waited", { resource: "m", wait: "2", served: 1 })
        yield* Effect.sleep("1 second")
        yield* send("PING")
      })))

  it.effect("accepts waiters that give up and waiters for other resources", () =>
    accepts(Checker.rules.inOrderWithinLines, ({ note }) =>
      Effect.gen(function*() {
        ask(note, "1")
        note("waiting", { resource: "n", wait: "other" })
        ask(note, "2")
        note("waited", { resource: "m", wait: "2", served: 1 })
        // One step later but at the same instant
        note("waited", { resource: "m", wait: "1" })
        yield* Effect.sleep("1 second")
        yield* send("PING")
      })))
})

describe("firstComeFirstServed", () => {
  const first = Effect.gen(function*() {
    const subscriber = yield* Subscriber
    yield* subscriber.subscribe("all")
    yield* send("ZADD", "queue", "1", "line:a")
    yield* send("ZADD", "queue", "2", "line:b")
  })
  const listening = { channel: () => "all" }

  it.effect("finds a waiter that is served before an earlier one unless both are in one line", () =>
    Effect.gen(function*() {
      const overtaken = () => Effect.andThen(first, take("line:b"))
      yield* finds(
        Checker.rules.firstComeFirstServed,
        /granted to line:b although line:a has waited/,
        overtaken,
        listening
      )
      yield* accepts(Checker.rules.firstComeFirstServed, overtaken, { ...listening, line: (id) => id.split(":")[0]! })
    }))

  it.effect("finds a newcomer that is served before a waiter", () =>
    finds(
      Checker.rules.firstComeFirstServed,
      /granted to new although line:a has waited/,
      () => Effect.andThen(first, take("new")),
      listening
    ))
})

describe("tokensGrow", () => {
  const model = { tokenKey: () => "fence" }
  const grantedWith = (token: number) => Effect.andThen(send("SET", "fence", String(token)), take(`id${token}`))
  const holders = (...tokens: ReadonlyArray<number>) => ({ note }: Simulation.Client) =>
    Effect.gen(function*() {
      yield* grantedWith(10)
      for (const token of tokens) note("granted", { resource: "m", id: "id10", token })
      yield* grantedWith(13)
      note("granted", { resource: "m", id: "id13", token: 13 })
    })

  it.effect("accepts a grant's reserved tokens in order, but no other tokens", () =>
    Effect.gen(function*() {
      const reserving = { ...model, spareTokens: () => 2 }
      yield* accepts(Checker.rules.tokensGrow, holders(10, 11, 12), reserving)
      yield* finds(
        Checker.rules.tokensGrow,
        /id10 received token 11, but the server granted 10/,
        holders(10, 11),
        model
      )
      yield* finds(Checker.rules.tokensGrow, /id10 received token 13/, holders(10, 13), reserving)
      yield* finds(Checker.rules.tokensGrow, /id10 received token 10/, holders(11, 10), reserving)
    }))
})
