/** The programs of `pnpm explore`: each so small that every schedule with two deviations can be run. */
import { Leadership, Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { Checker, type Simulation, TestMutex } from "@effect-simba/testkit"
import * as SimbaContender from "@effect-simba/testkit/SimbaContender"
import { Duration, Effect, Layer } from "effect"
import * as lockModel from "../../src/internal/mutex/lockModel.ts"
import { mixedLock, oursOnly } from "../simulate/mixedFleetPlan.ts"
import type { Scope } from "./scope.ts"
import { streamScopes } from "./streamScopes.ts"

type Client = Simulation.Client
type Program = Simulation.Plan<never>["program"]

const lease = { ttl: 2000, transition: 2500, confirmTimeout: 500 } as const

const bounds = Effect.runSync(lockModel.bounds(lease))

/** A process that uses mutexes; its use of them is noted. */
const process = (work: (client: Client) => Effect.Effect<unknown, unknown, Mutex.Mutex>): Program => (client) =>
  Effect.andThen(Mutex.Mutex, Effect.andThen(client.ready, work(client))).pipe(
    Effect.provide(
      TestMutex.layerNoted(client).pipe(
        Layer.provide(Mutex.layer({ ...lease, processName: `${client.name}.${client.generation}` })),
        Layer.provide(RedisMutex.layerStore)
      )
    ),
    Effect.ignore
  )

const plan = (
  clients: number,
  resources: ReadonlyArray<string>,
  program: Program,
  rest?: Partial<Simulation.Plan<never>>
): Simulation.Plan<never> => ({
  clients,
  program,
  lock: lockModel.make(resources),
  checkers: [Checker.rules.inOrderWithinLines, ...Checker.all(bounds)],
  duration: "7 seconds",
  calm: "100 millis",
  liveness: "20 seconds",
  closing: "10 seconds",
  ...rest
})

const hold = (mutex: string, millis: number) => Mutex.withLock(mutex)(Effect.sleep(Duration.millis(millis)))

const nothing = { delays: [], losses: false, cuts: false, kills: false, interruptions: false, setAside: [] } as const

/** The first comes first. */
const inTurn = (client: Client) => Effect.sleep(Duration.millis(client.index * 10))

export const scopes: Readonly<Record<string, Scope>> = {
  two: {
    what: "two contenders for one mutex",
    plan: plan(2, ["a"], process((client) => client.interruptible("work", Effect.ignore(hold("a", 50)))))
  },
  long: {
    what: "two contenders for one mutex, the first of which holds it longer than the confirm period",
    plan: plan(2, ["a"], process((client) => Effect.andThen(inTurn(client), hold("a", 600))), {
      vary: { delays: [1, 300], interruptions: false, setAside: [] }
    })
  },
  three: {
    what: "three contenders for one mutex",
    plan: plan(3, ["a"], process((client) => Effect.andThen(inTurn(client), hold("a", 50))), {
      vary: { delays: [600], losses: false, interruptions: false, setAside: [] }
    })
  },
  simba: {
    what: "two contenders and a Simba contender for one mutex",
    plan: plan(3, ["a"], (client) =>
      client.index === 0
        ? Effect.andThen(
          client.ready,
          SimbaContender.contend({
            mutex: "a",
            id: `1:${client.generation}@${client.name}`,
            ttl: lease.ttl,
            transition: lease.transition,
            rest: "1 hour",
            lead: Effect.sleep("50 millis")
          })
        ).pipe(Effect.scoped, Effect.ignore)
        : process((client) => Effect.andThen(inTurn(client), hold("a", 50)))(client), {
      lock: mixedLock,
      checkers: [
        Checker.rules.oneOwner,
        oursOnly(Checker.rules.tokensGrow),
        Checker.rules.ensureTellsTheTruth,
        Checker.rules.workIsProtected,
        Checker.rules.releasedAfterWork,
        Checker.rules.workNeverOverlaps,
        Checker.rules.everybodyIsServed
      ],
      vary: { losses: false, cuts: false, interruptions: false, setAside: [] }
    })
  },
  within: {
    what: "hand-over within a process, beside another process",
    plan: plan(
      2,
      ["a"],
      process((client) =>
        client.index === 0
          ? Effect.all([client.interruptible("work", Effect.ignore(hold("a", 50))), hold("a", 50)], {
            concurrency: "unbounded"
          })
          : Effect.andThen(inTurn(client), hold("a", 50))
      ),
      { vary: { cuts: false } }
    )
  },
  both: {
    what: "two mutexes at once, asked for in both orders",
    plan: plan(
      2,
      ["a", "b"],
      process((client) =>
        Effect.scoped(Effect.gen(function*() {
          const lease = yield* Mutex.acquireAll(client.index === 0 ? ["a", "b"] : ["b", "a"])
          yield* lease.protect(Effect.sleep("50 millis"))
        }))
      ),
      { vary: { cuts: false, interruptions: false } }
    )
  },
  forced: {
    what: "a forced release while the mutex is granted",
    plan: plan(
      2,
      ["a"],
      process((client) =>
        client.index === 0
          ? hold("a", 50)
          : Effect.all([
            hold("a", 50),
            Effect.andThen(Effect.sleep("50 millis"), Mutex.forceRelease("a"))
          ], { concurrency: "unbounded" })
      ),
      { vary: { interruptions: false, setAside: [] } }
    )
  },
  leaders: {
    what: "two leaders with work at a fixed rate",
    plan: plan(
      2,
      ["a"],
      process((client) =>
        Leadership.runJobs(Mutex.contend("a"), [{
          name: "job",
          schedule: Leadership.every("200 millis"),
          run: Effect.sync(() => client.note("ran"))
        }]).pipe(Effect.scoped, Effect.timeout("250 millis"))
      ),
      { vary: { losses: false, cuts: false, interruptions: false } }
    )
  },
  paused: {
    what: "two contenders for one mutex, paused past half of a confirm period, past all of it, or past a lease",
    plan: plan(2, ["a"], process((client) => Effect.andThen(inTurn(client), hold("a", 600))), {
      duration: "12 seconds",
      vary: { ...nothing, delays: [300], pauses: [300, 600, 5000] }
    })
  },
  clocks: {
    what: "two contenders for one mutex, a server whose clock is set, and a fail-over that loses the last write",
    plan: plan(2, ["a"], process((client) => Effect.andThen(inTurn(client), hold("a", 600))), {
      vary: { ...nothing, delays: [300, 600], serverSteps: [-1000, 1000], failOvers: true }
    })
  },
  ...streamScopes
}
