/** Tests explorations: which schedules run, in what order, and which bugs they find. */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { Checker, Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { Redis } from "effect/persistence/Redis"

const nothing: NonNullable<Simulation.Plan<never>["vary"]> = {
  delays: [],
  losses: false,
  cuts: false,
  kills: false,
  interruptions: false,
  setAside: []
}

const plan = (
  program: Simulation.Plan<never>["program"],
  vary: Simulation.Plan<never>["vary"],
  checkers: ReadonlyArray<Checker.Checker> = []
): Simulation.Plan<never> => ({
  clients: 1,
  program,
  lock: { resources: ["a"], ownerKey: () => "lock" },
  checkers,
  vary: { ...nothing, ...vary },
  duration: "2 seconds",
  calm: "100 millis",
  liveness: "100 millis",
  closing: "1 second"
})

const ping = Effect.ignore(Effect.flatMap(Redis, (redis) => redis.send("PING")))

const twice = (client: Simulation.Client) => Effect.andThen(client.ready, Effect.andThen(ping, ping))

/** Explores all schedules, and returns their counts and branches. */
const histories = Effect.fnUntraced(function*(plan: Simulation.Plan<never>, deviations: number) {
  const { branches, ...counts } = yield* Simulation.explore(plan, { deviations, all: true })
  return { ...counts, branches }
})

describe("An exploration", () => {
  it.effect("ends when `isOver` returns true, after which there are no deviations", () =>
    Effect.gen(function*() {
      const often = (client: Simulation.Client) =>
        Effect.andThen(client.ready, Effect.forever(Effect.andThen(ping, Effect.sleep("100 millis"))))
      const lost = plan(often, { losses: true })
      const { schedules } = yield* histories(lost, 1)
      const { schedules: early } = yield* histories({ ...lost, isOver: (view) => view.now() >= 250 }, 1)
      // One schedule without deviations, and two for each ping: with a lost request and with a lost reply
      assert.strictEqual(early, 1 + 2 * 3)
      assert.isAbove(schedules, 1 + 2 * 15)
    }))

  it.effect("does not delay processes that start after the exploration has ended", () =>
    Effect.gen(function*() {
      const long = (client: Simulation.Client) =>
        Effect.andThen(
          client.ready,
          Effect.andThen(ping, Effect.sync(() => client.note("ready in", { phase: client.phase() })))
        )
      // The next process starts between 50 and 150 ms after a kill
      const killed = plan(long, { kills: true })
      const { events } = yield* Simulation.replay({ ...killed, duration: "50 millis" }, "0 c1 killed")
      const phases = events.flatMap((event) => event._tag === "Note" ? [event.fields["phase"]] : [])
      assert.deepStrictEqual(phases, ["liveness"])
    }))

  it.effect("runs each combination of deviations exactly once", () =>
    Effect.gen(function*() {
      const lost = plan(twice, { losses: true })
      const { branches, isComplete, schedules, states } = yield* histories(lost, 2)
      assert.deepStrictEqual(branches, [
        "0 c1 request lost",
        "1 c1 reply lost",
        "2 c1 request lost",
        "3 c1 reply lost"
      ])
      // No loss, one of four losses, or a loss for the first ping combined with a loss for the second
      assert.strictEqual(schedules, 1 + 4 + 4)
      assert.strictEqual(states, 9)
      assert.isTrue(isComplete)
      assert.strictEqual((yield* histories(lost, 3)).schedules, 9)
      assert.strictEqual((yield* histories(lost, 0)).schedules, 1)
    }))

  it.effect("begins when all processes are ready, and includes only the requested kinds of deviations", () =>
    Effect.gen(function*() {
      const early = (client: Simulation.Client) => Effect.andThen(ping, client.ready)
      assert.deepStrictEqual((yield* histories(plan(early, { losses: true }), 1)).branches, [])
      const kinds = (vary: Simulation.Plan<never>["vary"]) =>
        Effect.map(
          histories(plan(twice, vary), 0),
          ({ branches }) => [...new Set(branches.map((branch) => branch.replace(/^\d+ /, "")))]
        )
      assert.deepStrictEqual(yield* kinds({ delays: [1, 500] }), [
        "c1 request late by 1 ms",
        "c1 request late by 500 ms",
        "c1 reply late by 1 ms",
        "c1 reply late by 500 ms"
      ])
      assert.deepStrictEqual(yield* kinds({ cuts: true }), ["c1 cut before the request", "c1 cut before the reply"])
      assert.deepStrictEqual(yield* kinds({ partitions: [500] }), ["c1 cut off for 500 ms"])
      assert.deepStrictEqual(yield* kinds({ kills: true, pauses: [100], suspensions: [200] }), [
        "c1 paused for 100 ms",
        "c1 suspended for 200 ms",
        "c1 killed"
      ])
      assert.deepStrictEqual(yield* kinds({ rates: [0.5, 2] }), [
        "c1 clocks run at 0.5 of their rate",
        "c1 clocks run at 2 of their rate"
      ])
      assert.deepStrictEqual(yield* kinds({ serverSteps: [-5], failovers: true }), [
        "server clock steps by -5 ms",
        "server fails over without its last write"
      ])
    }))

  it.effect("deviates only where `where` allows it", () =>
    Effect.gen(function*() {
      const every = { delays: [1], losses: true, pauses: [1], kills: true, setAside: [1] }
      const within = (where: NonNullable<Simulation.Plan<never>["vary"]>["where"]) =>
        Effect.map(histories({ ...plan(twice, { ...every, where }), clients: 2 }, 0), ({ branches }) => branches)
      const all = yield* within(undefined)
      assert.isTrue(all.some((branch) => branch.includes("c1 ")))
      assert.deepStrictEqual(yield* within(() => true), all)
      assert.deepStrictEqual(yield* within(() => false), [])
      const requests = yield* within(({ args, at, client }) =>
        client === "c2" && at === "request" && args[0] === "PING"
      )
      assert.deepStrictEqual(requests, [
        "0 c2 request late by 1 ms",
        "0 c2 request lost",
        "1 c2 request late by 1 ms",
        "1 c2 request lost"
      ])
      const paused = yield* within(({ at }) => at === "arrival")
      assert.isNotEmpty(paused)
      assert.isTrue(paused.every((branch) => / (killed|paused for 1 ms)$/.test(branch)))
      const fibers = yield* within(({ at }) => at === "fiber")
      assert.isNotEmpty(fibers)
      assert.isTrue(fibers.every((branch) => branch.includes(" set aside ")))
    }))

  it.effect("stops a suspended machine's monotonic clock, and scales sleeps by the clock rate", () =>
    Effect.gen(function*() {
      const sleeps = (client: Simulation.Client) =>
        Effect.andThen(
          client.ready,
          Effect.forEach(
            [100, 200],
            (millis) => Effect.andThen(Effect.sleep(millis), Effect.sync(() => client.note(`slept ${millis}`))),
            { concurrency: "unbounded", discard: true }
          )
        )
      const notes = (vary: Simulation.Plan<never>["vary"], schedule: string) =>
        Effect.map(
          Simulation.replay(plan(sleeps, vary), schedule),
          ({ events }) =>
            events.flatMap((event) => event._tag === "Note" ? [`${event.kind} at ${Math.round(event.at)}`] : [])
        )
      assert.deepStrictEqual(yield* notes({}, ""), ["slept 100 at 100", "slept 200 at 200"])
      // Both sleeps have ended when the process resumes
      assert.deepStrictEqual(
        yield* notes({ pauses: [500] }, "0 c1 paused for 500 ms"),
        ["slept 100 at 600", "slept 200 at 600"]
      )
      // The remaining time of the second sleep is the same as before the suspension
      assert.deepStrictEqual(
        yield* notes({ suspensions: [500] }, "0 c1 suspended for 500 ms"),
        ["slept 100 at 600", "slept 200 at 700"]
      )
      const half = { rates: [0.5], suspensions: [500] }
      assert.deepStrictEqual(
        yield* notes(half, "0 c1 clocks run at 0.5 of their rate"),
        ["slept 100 at 200", "slept 200 at 400"]
      )
      assert.deepStrictEqual(
        yield* notes(half, "0 c1 clocks run at 0.5 of their rate, 1 c1 suspended for 500 ms"),
        ["slept 100 at 700", "slept 200 at 900"]
      )
    }))

  it.effect("kills a process at most once between two events", () =>
    Effect.gen(function*() {
      const sleeps = Effect.forEach([1, 2, 3], () => Effect.sleep("1 millis"), { discard: true })
      const kills = (work: Effect.Effect<unknown, unknown, Redis>) =>
        Effect.map(
          histories(plan((client) => Effect.ignore(Effect.andThen(client.ready, work)), { kills: true }), 1),
          ({ branches }) => branches
        )
      // A kill has the same outcome at any time before the next command is sent
      const slept = plan((client) => Effect.andThen(client.ready, sleeps), { kills: true })
      assert.strictEqual((yield* histories(slept, 1)).skipped, 2)
      assert.deepStrictEqual(yield* kills(sleeps), ["0 c1 killed"])
      // One kill before the request, and one before the reply
      assert.strictEqual((yield* kills(Effect.andThen(sleeps, ping))).length, 2)
      // The next process starts at a multiple of 100 ms
      assert.strictEqual((yield* kills(Effect.andThen(sleeps, Effect.andThen(Effect.sleep(100), sleeps)))).length, 2)
    }))

  it.effect("replays every kind of deviation", () =>
    Effect.gen(function*() {
      const noted = (client: Simulation.Client) =>
        Effect.gen(function*() {
          const redis = yield* Redis
          yield* client.ready
          yield* redis.send("SET", "k", "1", "PX", "60000")
          client.note("set")
          yield* client.interruptible("sleep", Effect.sleep("100 millis"))
          client.note("read", { value: String(yield* redis.send("GET", "k")) })
        }).pipe(Effect.catch(() => Effect.sync(() => client.note("failed"))))
      const every = plan(noted, {
        delays: [50],
        losses: true,
        cuts: true,
        partitions: [800],
        pauses: [500],
        kills: true,
        interruptions: true,
        failovers: true
      })
      const notes = (schedule: string) =>
        Effect.map(Simulation.replay(every, schedule), ({ events }) =>
          events.flatMap((event) =>
            event._tag === "Note" ? [`${event.kind}${event.fields["value"] ?? ""} ${Math.round(event.at - 0.5)}`] : []
          ))
      assert.deepStrictEqual(yield* notes(""), ["set 0", "read1 100"])
      assert.deepStrictEqual(yield* notes("0 c1 request late by 50 ms"), ["set 50", "read1 150"])
      assert.deepStrictEqual(yield* notes("0 c1 request lost"), ["failed 1000"])
      assert.deepStrictEqual(yield* notes("0 c1 cut before the request"), ["failed 0"])
      assert.deepStrictEqual(yield* notes("0 c1 cut off for 800 ms"), ["set 800", "read1 900"])
      const { branches } = yield* histories(every, 0)
      const at = (what: string) =>
        branches.find((branch) =>
          branch.endsWith(what)
        )!
      assert.deepStrictEqual(yield* notes(at("fails over without its last write")), ["set 0", "readnull 100"])
      assert.deepStrictEqual(yield* notes(at("paused for 500 ms")), ["set 500", "read1 600"])
      assert.deepStrictEqual(yield* notes(at("interrupts sleep")), ["set 0", "read1 100"])
      assert.deepStrictEqual(yield* notes(at("c1 killed")), ["set 100", "read1 200"])
    }))

  it.effect("refuses a schedule with deviations that do not occur", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Simulation.replay(plan(twice, { losses: true }), "0 c1 killed"))
      assert.strictEqual(exit._tag, "Failure")
      assert.include(String(exit), "there is: c1 request lost")
      const late = yield* Effect.exit(Simulation.replay(plan(twice, { losses: true }), "99 c1 request lost"))
      assert.include(String(late), "no such point")
    }))

  it.effect("finds a waiter that checks for work before it subscribes, with the shortest schedule, and replays it", () =>
    Effect.gen(function*() {
      // The waiter checks for work before it subscribes, so work that arrives in the meantime wakes up nobody
      const consumer = (client: Simulation.Client) =>
        Effect.gen(function*() {
          const redis = yield* Redis
          const subscriber = yield* Subscriber
          client.note("waiting", { resource: "a", wait: 1 })
          if ((yield* redis.send("GET", "work")) === null) {
            const wakeUps = yield* subscriber.subscribe("work")
            yield* Queue.take(wakeUps)
          }
          client.note("waited", { resource: "a", wait: 1 })
        })
      const producer = Effect.gen(function*() {
        const redis = yield* Redis
        yield* Effect.sleep("10 millis")
        yield* redis.send("SET", "work", "1")
        yield* redis.send("PUBLISH", "work", "1")
      })
      const program = (client: Simulation.Client) =>
        Effect.andThen(client.ready, client.index === 0 ? consumer(client) : producer).pipe(
          Effect.scoped,
          Effect.ignore
        )
      const buggy = { ...plan(program, { delays: [20] }, [Checker.rules.everybodyIsServed]), clients: 2 }
      const { first, schedules, violations } = yield* Simulation.explore(buggy, { deviations: 2 })
      assert.strictEqual(violations, 1)
      assert.isBelow(schedules, 10)
      assert.isDefined(first)
      assert.strictEqual(first.schedule, "1 c1 reply late by 20 ms")
      assert.strictEqual(first.violations[0]?.checker, Checker.rules.everybodyIsServed.name)
      const repeated = yield* Simulation.replay(buggy, first.schedule!)
      assert.deepStrictEqual(repeated.events, first.events)
      assert.include(Simulation.report(repeated), "schedule \"1 c1 reply late by 20 ms\"")
      assert.match(Simulation.report(repeated, { format: "svg" }), /^<svg [^]*late reply GET/)
      const { isComplete } = yield* Simulation.explore(buggy, { deviations: 1 })
      assert.isFalse(isComplete)
    }))

  it.effect("delays a runnable fiber", () =>
    Effect.gen(function*() {
      const racing = (client: Simulation.Client) =>
        Effect.andThen(
          client.ready,
          Effect.forEach(
            ["first", "second"],
            (kind) => Effect.andThen(Effect.yieldNow, Effect.sync(() => client.note(kind))),
            {
              concurrency: "unbounded",
              discard: true
            }
          )
        )
      const { branches } = yield* histories(plan(racing, { setAside: [1] }), 0)
      assert.isNotEmpty(branches)
      const orders = yield* Effect.forEach(
        ["", ...branches],
        (schedule) =>
          Effect.map(Simulation.replay(plan(racing, { setAside: [1] }), schedule), ({ events }) =>
            events.flatMap((event) => event._tag === "Note" ? [event.kind] : []).join())
      )
      assert.strictEqual(orders[0], "first,second")
      assert.include(orders, "second,first")
    }))
})
