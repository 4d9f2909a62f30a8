/** Runs contenders with random operations, some of them concurrent, and checks their guarantees. */
import { type Contender, type Lease, Mutex, MutexName } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { Context, Effect, Exit, Fiber, Option, Random, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import type * as FaultyStore from "./faultyStore.ts"
import * as Fleet from "./fleet.ts"

type Ask = "stop" | "start" | "stepDown" | "leave"

interface Party {
  readonly name: string
  readonly jobs: Contender.Contender
  readonly scope: Scope.Closeable
  /** Whether the contender should lead: it is not closing, and start was called after the last stop. */
  wanted: boolean
  starts: number
  /** Whether a stop has returned since the last start. */
  stopped: boolean
  closing: boolean
  /** How many pieces of work run under each lease, by lease id. Running finalizers count as running work. */
  readonly running: Map<string, number>
  probes: number
  probe: Fiber.Fiber<unknown, unknown>
  reader: Fiber.Fiber<unknown, unknown>
}

const isDone = (fiber: Fiber.Fiber<unknown, unknown>) => fiber.pollUnsafe() !== undefined

/**
 * Runs a simulation, and returns the problems that it finds. With `outages`, leases are lost because the backend
 * sometimes fails or replies late.
 */
export const simulate = Effect.fnUntraced(function*(seed: string, outages: boolean) {
  const random = yield* Random.withSeed(Random.Random, seed)
  const chance = () => random.nextDoubleUnsafe()
  const below = (n: number) => Math.floor(chance() * n)
  const pick = <A>(...of: ReadonlyArray<A>): A => of[below(of.length)]!
  const problems: Array<string> = []
  const scope = yield* Effect.scope
  const fleet = yield* Fleet.make
  const store = Context.get(fleet.store, MutexStore.MutexStore)
  const mutex = MutexName.MutexName.make("jobs")
  const owner = Effect.map(Effect.orDie(store.owner(mutex)), (found) => found._tag === "Free" ? undefined : found.owner)
  const problem = (party: Party, what: string) => void problems.push(`${party.name}: ${what}`)
  const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkIn(effect, scope, { startImmediately: chance() < 0.5 })

  const runs = (party: Party, lease?: string) => lease === undefined ? party.running.size > 0 : party.running.has(lease)

  const ask = (party: Party, what: Ask, isInside: boolean): Effect.Effect<void> =>
    Effect.gen(function*() {
      const led = yield* party.jobs.lease
      if (what === "start") {
        party.wanted = !party.closing
        party.stopped &&= party.closing
        party.starts++
      }
      if (what === "stop") party.wanted = false
      const { starts } = party
      yield* party.jobs[what]
      if (isInside || what === "start" || what === "leave") return
      if (Option.isSome(led) && runs(party, led.value.id)) problem(party, `${what} returned before the work had ended`)
      if (what === "stepDown" || starts !== party.starts) return
      party.stopped = true
      if (Option.isSome(yield* party.jobs.lease)) problem(party, "leads after stop")
    })

  const anyAsk = (party: Party) => ask(party, pick<Ask>("stop", "start", "stepDown", "stepDown", "leave"), true)
  const pause = () => Effect.sleep(below(2000))
  const acts: ReadonlyArray<(party: Party, lease: Lease.Lease) => Effect.Effect<unknown, unknown>> = [
    () => Effect.never,
    pause,
    () => Effect.fail("no"),
    (party) => Effect.ensuring(Effect.fail("no"), anyAsk(party)),
    () => Effect.uninterruptible(pause()),
    anyAsk,
    (party) => Effect.andThen(pause(), anyAsk(party)),
    (party) => Effect.uninterruptible(Effect.andThen(pause(), anyAsk(party))),
    (party) => Effect.ensuring(pick(pause(), Effect.never), anyAsk(party)),
    (party) => Effect.ensuring(pause(), Effect.all([anyAsk(party), anyAsk(party)], { concurrency: "unbounded" })),
    (party, lease) => lease.protect(Effect.ensuring(pick(pause(), Effect.never), anyAsk(party)))
  ]

  const work = (party: Party) => (lease: Lease.Lease) =>
    Effect.acquireUseRelease(
      Effect.gen(function*() {
        party.running.set(lease.id, (party.running.get(lease.id) ?? 0) + 1)
        if (party.stopped) problem(party, "works after stop")
        if (!(yield* lease.isHeld)) problem(party, "works without a lease")
        if (!outages && parties.some((other) => other !== party && runs(other))) {
          problem(party, "works alongside another contender")
        }
      }),
      () => Effect.suspend(() => pick(...acts)(party, lease)),
      () =>
        Effect.gen(function*() {
          yield* Effect.sleep(pick(0, below(1500)))
          if (!outages && (yield* owner) !== lease.id) problem(party, "was released before its work had ended")
          const left = party.running.get(lease.id)! - 1
          if (left === 0) party.running.delete(lease.id)
          else party.running.set(lease.id, left)
        })
    )

  const parties: Array<Party> = []
  for (const name of ["a", "b"]) {
    const node = yield* fleet.node(name)
    const own = yield* Scope.make()
    const jobs = yield* node.here(Scope.provide(Mutex.contend("jobs"), own))
    const probe = Effect.acquireUseRelease(
      Effect.sync(() => party.probes++),
      () => Effect.never,
      () => Effect.sync(() => party.probes--)
    )
    const party: Party = {
      name,
      jobs,
      scope: own,
      wanted: true,
      starts: 0,
      stopped: false,
      closing: false,
      running: new Map(),
      probes: 0,
      probe: yield* fork(jobs.whileLeader(probe)),
      reader: yield* fork(Stream.runDrain(jobs.events))
    }
    parties.push(party)
  }

  const asked: Array<Fiber.Fiber<unknown, unknown>> = []
  const workers: Array<Fiber.Fiber<unknown, unknown>> = []

  /**
   * Follows five changes of the contender's state. Either calls the contender after some of them, or pauses after each.
   */
  const meddle = (party: Party) =>
    pick(
      Stream.runForEach(
        Stream.take(party.jobs.changes, 5),
        () => chance() < 0.3 ? ask(party, pick<Ask>("stop", "start", "stepDown", "leave"), false) : Effect.void
      ),
      Stream.runForEach(Stream.take(party.jobs.changes, 5), () => Effect.sleep(below(500)))
    )

  const close = (party: Party) =>
    Effect.suspend(() => {
      if (party.closing) return Effect.void
      party.closing = true
      party.wanted = false
      return Effect.andThen(
        Scope.close(party.scope, Exit.void),
        Effect.sync(() => {
          party.stopped = true
          if (runs(party)) problem(party, "closed before the work had ended")
        })
      )
    })

  const interruptOne = Effect.fnUntraced(function*(fibers: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) {
    const fiber = pick(...fibers)
    if (fiber !== undefined) asked.push(yield* fork(Fiber.interrupt(fiber)))
  })

  const step = Effect.gen(function*() {
    const party = pick(...parties)
    const dice = chance()
    if (dice < 0.4) asked.push(yield* fork(ask(party, pick<Ask>("stop", "start", "start", "stepDown", "leave"), false)))
    else if (dice < 0.75) workers.push(yield* fork(party.jobs.whileLeader(work(party))))
    else if (dice < 0.8) workers.push(yield* fork(meddle(party)))
    else if (dice < 0.9) yield* interruptOne(workers)
    else if (dice < 0.96) yield* interruptOne(asked)
    else if (dice < 0.98) asked.push(yield* fork(close(party)))
    else if (outages) {
      const mode = pick<FaultyStore.Switches["acquire"]>("fail", { late: "2 seconds" }, "work")
      const inspect = mode === "fail" ? mode : "work"
      Object.assign(fleet.faults, { acquire: mode, guard: mode, release: mode, inspect })
    }
    if (chance() < 0.5) yield* TestClock.adjust(pick(0, 0, below(50), below(3000), outages ? below(20_000) : 0))
  })
  yield* Effect.repeat(step, { times: 40 })

  Object.assign(fleet.faults, { acquire: "work", guard: "work", release: "work", inspect: "work" })
  for (const worker of workers) asked.push(yield* fork(Fiber.interrupt(worker)))
  yield* TestClock.adjust("2 minutes")
  if (!asked.every(isDone)) problems.push("something hangs")
  const wanted = parties.filter((party) => party.wanted)
  const leaders: Array<Party> = []
  for (const party of parties) {
    const leads = Option.isSome(yield* party.jobs.lease)
    if (leads) leaders.push(party)
    const { _tag } = yield* party.jobs.state
    if (leads !== (_tag === "Leading")) problem(party, "is in the wrong state")
    if (party.probes !== (leads ? 1 : 0)) problem(party, `its work runs ${party.probes} times, leads: ${leads}`)
    if (leads && !party.wanted) problem(party, "leads although it was stopped")
  }
  if (leaders.length !== (wanted.length === 0 ? 0 : 1)) {
    problems.push(`${leaders.length} lead, ${wanted.length} want to`)
  }

  const closed = yield* Effect.forEach(parties, (party) => fork(close(party)))
  yield* TestClock.adjust("1 minute")
  if (!closed.every(isDone)) problems.push("closing hangs")
  if (!parties.every((party) => isDone(party.reader))) problems.push("the event stream does not end")
  if ((yield* owner) !== undefined) problems.push("the mutex is not free")
  yield* Effect.forEach(parties, (party) => fork(Fiber.interrupt(party.probe)))
  return problems
})
