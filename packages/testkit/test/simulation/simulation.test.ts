/** Runs a small lock with and without mistakes. Each mistake must be caught by its checker. */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { Checker, Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit } from "effect"
import * as Redis from "effect/persistence/Redis"

type Mistake =
  | "grants twice"
  | "reuses tokens"
  | "relies on its lease forever"
  | "works on without its lease"
  | "releases too early"
  | "lets newcomers in first"
  | "oversleeps"
  | "forgets a waiter"
  | "leaves a key"
  | "dies"

const grant = Redis.script((...args: ReadonlyArray<string | number>) => args, {
  numberOfKeys: 4,
  lua: `
local owner, fence, queue, seq = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, ttl, mistake = ARGV[1], ARGV[2], ARGV[3]
local head = redis.call('ZRANGE', queue, 0, 0)[1]
local free = redis.call('EXISTS', owner) == 0 or mistake == 'grants twice'
if free and (not head or head == id or mistake == 'lets newcomers in first') then
  redis.call('ZREM', queue, id)
  redis.call('SET', owner, id, 'PX', ttl)
  if mistake ~= 'reuses tokens' or redis.call('EXISTS', fence) == 0 then
    redis.call('INCR', fence)
  end
  return { 1, redis.call('GET', fence) }
end
if not redis.call('ZSCORE', queue, id) then
  redis.call('ZADD', queue, redis.call('INCR', seq), id)
end
return { 0, redis.call('ZSCORE', queue, id) }
`
}).withReturnType<readonly [0 | 1, string]>()

const release = Redis.script((...args: ReadonlyArray<string>) => args, {
  numberOfKeys: 2,
  lua: `
redis.call('ZREM', KEYS[2], ARGV[1])
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
`
})

const lock: Simulation.LockModel = {
  resources: ["m"],
  ownerKey: () => "owner",
  tokenKey: () => "fence",
  channel: (_, id) => `channel:${id}`,
  queued: (args, reply) =>
    args[0] === "EVALSHA" && args[2] === "4" && Array.isArray(reply) && reply[0] === 0
      ? { resource: "m", id: args[7]!, place: Number(reply[1]) }
      : undefined,
  released: (args) => args[0] === "EVALSHA" && args[2] === "2" ? { resource: "m", id: args[5]! } : undefined,
  keep: (key) => key === "fence" || key === "seq"
}

const ttl = 1000

const program = (mistake: Mistake | undefined) => (client: Simulation.Client) =>
  Effect.gen(function*() {
    const redis = yield* Redis.Redis
    const subscriber = yield* Subscriber
    const { note, random } = client
    if (mistake === "dies" && client.index === 1) return yield* Effect.die("as told")
    if (mistake === "leaves a key" && client.index === 1) yield* redis.send("SET", "rubbish", "1")
    const sleep = (low: number, high: number) => Effect.sleep(Duration.millis(low + (high - low) * random()))
    for (let n = 1;; n++) {
      const id = `${n}:${client.name}`
      const fields = { resource: "m", id }
      const releaseLock = redis.eval(release)("owner", "queue", id).pipe(Effect.ignore)
      yield* Effect.scoped(Effect.gen(function*() {
        yield* subscriber.subscribe(`channel:${id}`)
        note("waiting", { resource: "m", wait: n })
        if (mistake === "forgets a waiter" && client.index === 1 && n > 3) return yield* Effect.never
        if (mistake === "oversleeps" && n > 2) yield* Effect.sleep("1 hour")
        let token = ""
        for (;;) {
          const [granted, text] = yield* redis.eval(grant)("owner", "fence", "queue", "seq", id, ttl, mistake ?? "")
          token = text
          if (granted === 1) break
          yield* sleep(10, 20)
        }
        note("waited", { wait: n })
        note("granted", { ...fields, token: Number(token) })
        const late = mistake === "relies on its lease forever" || mistake === "works on without its lease"
        note("ensured", { ...fields, left: ttl })
        note("begin", fields)
        yield* Effect.gen(function*() {
          yield* Effect.sleep(late && n > 2 ? ttl * 1.5 : 50)
          if (mistake === "relies on its lease forever") note("ensured", { ...fields, left: 1 })
          if (mistake === "works on without its lease" || !late) note("step", fields)
          if (mistake === "releases too early") yield* releaseLock
          yield* sleep(1, 5)
        }).pipe(Effect.ensuring(Effect.sync(() => note("end", fields))))
      })).pipe(Effect.ensuring(releaseLock))
      yield* sleep(0, 100)
    }
  })

const options = (seed: number, mistake?: Mistake) => ({
  seed,
  clients: 3,
  program: program(mistake),
  lock,
  checkers: Checker.all({ sleepBound: "2 seconds" }),
  duration: "10 seconds",
  liveness: "20 seconds",
  closing: "5 seconds"
} as const)

const delays: Simulation.Faults = {
  requestDelay: [0.1, 10],
  replyDelay: [0.1, 10],
  messageDelay: [0.1, 100],
  straggle: [0, 10]
}

describe("Simulation", () => {
  it.effect("does not find any violations in a correct lock", () =>
    Effect.gen(function*() {
      for (let seed = 1; seed <= 10; seed++) {
        const result = yield* Simulation.run({ ...options(seed), faults: delays })
        assert.deepStrictEqual(result.violations, [], Simulation.report(result))
        assert.isAbove(result.events.filter(({ _tag }) => _tag === "Owner").length, 50)
      }
    }))

  it.effect("gives the same trace a hundred times for a given seed", () =>
    Effect.gen(function*() {
      const traces = new Set<string>()
      for (let i = 0; i < 100; i++) {
        const result = yield* Simulation.run({ ...options(7), faults: Simulation.allFaults, duration: "4 seconds" })
        traces.add(Simulation.report(result, { format: "trace" }))
      }
      assert.strictEqual(traces.size, 1)
      const other = yield* Simulation.run({ ...options(8), faults: Simulation.allFaults, duration: "4 seconds" })
      assert.isFalse(traces.has(Simulation.report(other, { format: "trace" })))
    }), { tags: ["long"] })

  it.effect("still injects the other faults at the same times if one is omitted", () =>
    Effect.gen(function*() {
      const faultsOf = (enabled: ReadonlyArray<Simulation.Result["enabled"][number]>) =>
        Effect.map(
          Simulation.run({ ...options(3), checkers: [], faults: Simulation.allFaults, enabled }),
          ({ events }) =>
            events.filter((event) => event._tag === "Fault" && event.fault === "flushScripts").map(({ at }) => at)
        )
      const alone = yield* faultsOf(["flushScripts"])
      assert.isNotEmpty(alone)
      assert.deepStrictEqual(yield* faultsOf(["flushScripts", "pause", "loseReply", "kill"]), alone)
    }))
})

describe("A simulation with invalid options", () => {
  it.effect.each(
    [
      [{ clients: 0 }, "clients: 0 is not a whole number of at least 1"],
      [{ clients: 1.5 }, "clients: 1.5 is not a whole number of at least 1"],
      [{ faults: { requestDelay: [1, 2] }, enabled: ["kill"] }, "enabled: \"kill\" is not one of the faults"]
    ] as const
  )("refuses %j, which would prove nothing", ([wrong, message]) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Simulation.run({ ...options(1), ...wrong }))
      assert.include(String(Exit.isFailure(exit) && Cause.squash(exit.cause)), message)
    }))
})

describe("Checkers catch a lock that", () => {
  const caught = (mistake: Mistake, ...checkers: ReadonlyArray<string>) =>
    it.effect(mistake, () =>
      Effect.gen(function*() {
        // Run only the checkers for this mistake, because others might report it first
        const asked = options(1, mistake)
        const alone = asked.checkers.filter(({ name }) => checkers.includes(name))
        const result = yield* Simulation.run({ ...asked, checkers: alone })
        const found = result.violations[0]
        assert.isDefined(found, Simulation.report(result))
        assert.include(checkers, found.checker, Simulation.report(result))
      }))

  caught("grants twice", Checker.rules.oneOwner.name)
  caught("reuses tokens", Checker.rules.tokensGrow.name)
  caught("relies on its lease forever", Checker.rules.ensureIsTruthful.name)
  caught("works on without its lease", Checker.rules.workIsProtected.name)
  caught("works on without its lease", Checker.rules.workNeverOverlaps.name)
  caught("releases too early", Checker.rules.releasedAfterWork.name)
  caught("lets newcomers in first", Checker.rules.firstComeFirstServed.name)
  caught("oversleeps", Checker.rules.nobodyOversleeps({ bound: "1 second", afterLoss: "1 second" }).name)
  caught("forgets a waiter", Checker.rules.everybodyIsServed.name)
  caught("leaves a key", Checker.rules.nothingIsLeft.name)
  caught("dies", "program")

  it.effect("leaves a fiber or a timer", () =>
    Effect.gen(function*() {
      const left = (program: Simulation.Options<never>["program"]) =>
        Effect.map(
          Simulation.run({ ...options(1), clients: 1, program, checkers: [Checker.rules.nothingIsLeft] }),
          ({ violations }) => violations.map(({ message }) => message).join()
        )
      assert.strictEqual(yield* left(() => Effect.never), "")
      assert.include(yield* left(() => Effect.andThen(Effect.forkDetach(Effect.never), Effect.never)), "1 fibers")
      assert.include(
        yield* left(() => Effect.andThen(Effect.forkDetach(Effect.sleep("1 day")), Effect.never)),
        "timers"
      )
    }))
})

describe("A failure", () => {
  it.effect("is shrunk to a short history and reported", () =>
    Effect.gen(function*() {
      const setup = { ...options(1, "lets newcomers in first"), clients: 5, faults: Simulation.allFaults }
      const result = yield* Simulation.run(setup)
      const shorter = yield* Simulation.shrink(setup, result)
      assert.strictEqual(shorter.violations[0]?.checker, result.violations[0]?.checker)
      assert.isBelow(shorter.enabled.length, result.enabled.length)
      assert.isAtMost(shorter.clients, result.clients)
      assert.isAtMost(shorter.events.length, result.events.length)
      const repeated = yield* Simulation.run({
        ...setup,
        clients: shorter.clients,
        enabled: shorter.enabled,
        duration: Duration.millis(shorter.duration)
      })
      assert.deepStrictEqual(
        Simulation.report(repeated, { format: "trace" }),
        Simulation.report(shorter, { format: "trace" })
      )
      const report = Simulation.report(shorter)
      assert.include(report, "seed 1")
      assert.include(report, "VIOLATION")
      assert.match(Simulation.report(shorter, { format: "timeline" }), /held .* token/)
      assert.match(Simulation.report(shorter, { format: "svg" }), /^<svg [^]*<\/svg>$/)
    }))
})
