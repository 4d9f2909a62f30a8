/**
 * The programs for `pnpm explore`, by name. Each is small enough to be run under every schedule with two deviations.
 */
import { Leadership, type Lease, Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { Checker, type Simulation, TestMutex } from "@effect-simba/testkit"
import * as SimbaContender from "@effect-simba/testkit/SimbaContender"
import { Duration, Effect, Layer } from "effect"
import * as lockModel from "../../src/internal/mutex/lockModel.ts"
import { mixedLock, withoutSimba } from "../simulate/mixedFleetPlan.ts"
import { beginsWith, keptThroughOneLoss, keptThroughPauses, silenceCosts } from "./leaseCheckers.ts"
import type { Scope } from "./scope.ts"
import { streamScopes } from "./streamScopes.ts"

type Client = Simulation.Client
type Program = Simulation.Plan<never>["program"]

const lease = { ttl: 2000, transition: 2500, confirmTimeout: 500 } as const

const bounds = Effect.runSync(lockModel.bounds(lease))

/** A process's program. `TestMutex.layerNoted` notes how it uses mutexes, for the checkers. */
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
  checkers: rules,
  duration: "7 seconds",
  calm: "100 millis",
  liveness: "20 seconds",
  closing: "10 seconds",
  ...rest
})

const hold = (mutex: string, millis: number) => Mutex.withLock(mutex)(Effect.sleep(Duration.millis(millis)))

/**
 * Notes the lease's remaining time, then a step every `every` milliseconds, and finally that the lease is still held.
 */
const watched = (client: Client, millis: number, every: number) => ({ ensure, id, mutex, timeLeft }: Lease.Lease) =>
  Effect.gen(function*() {
    const fields = { resource: mutex, id }
    client.note("left", { ...fields, millis: Duration.toMillis(yield* timeLeft) })
    for (let passed = 0; passed < millis; passed += every) {
      yield* Effect.sleep(Duration.millis(every))
      client.note("step", fields)
    }
    const left = Duration.toMillis(yield* timeLeft)
    yield* ensure
    client.note("ensured", { ...fields, left })
  })

const rules = [Checker.rules.inOrderWithinLines, ...Checker.all(bounds)]

const nothing = { delays: [], losses: false, cuts: false, kills: false, interruptions: false, setAside: [] } as const

/** Delays each process according to its index, so that processes queue in order. */
const inTurn = (client: Client) => Effect.sleep(Duration.millis(client.index * 10))

export const scopes: Readonly<Record<string, Scope>> = {
  two: {
    what: "two contenders for one mutex",
    plan: plan(2, ["a"], process((client) => client.interruptible("work", Effect.ignore(hold("a", 50)))))
  },
  long: {
    what: "two contenders for one mutex, which the first holds longer than the confirm period",
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
        withoutSimba(Checker.rules.tokensGrow),
        Checker.rules.ensureIsTruthful,
        Checker.rules.workIsProtected,
        Checker.rules.releasedAfterWork,
        Checker.rules.workNeverOverlaps,
        Checker.rules.everybodyIsServed
      ],
      vary: { losses: false, cuts: false, interruptions: false, setAside: [] }
    })
  },
  within: {
    what: "two fibers of one process share a mutex with another process",
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
  shared: {
    what: "two fibers of one process share a turn while another process waits",
    plan: plan(
      2,
      ["a"],
      process((client) =>
        client.index === 0
          // Shorter than `localTurn`, so the first fiber hands its lease on to the second
          ? Effect.all([client.interruptible("work", Effect.ignore(hold("a", 4))), hold("a", 4)], {
            concurrency: "unbounded"
          })
          : hold("a", 4)
      ),
      { vary: { cuts: false } }
    )
  },
  both: {
    what: "two processes acquire two mutexes together, in opposite orders",
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
    what: "a forced release around the time of a grant",
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
    what: "two contenders for a leadership with a job at a fixed rate",
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
    what: "two contenders for one mutex, with a pause longer than half a confirm period, a whole one, or a lease",
    plan: plan(
      2,
      ["a"],
      process((client) => Effect.andThen(inTurn(client), Mutex.withLock("a")(watched(client, 600, 600)))),
      {
        checkers: [...rules, keptThroughPauses(lease.ttl)],
        duration: "12 seconds",
        vary: { ...nothing, delays: [300], pauses: [300, 600, 5000], suspensions: [5000] }
      }
    )
  },
  clocks: {
    what: "two contenders for one mutex, with clock drift, steps of the server's clock, and a failover",
    plan: plan(
      2,
      ["a"],
      process((client) => Effect.andThen(inTurn(client), Mutex.withLock("a")(watched(client, 600, 20)))),
      {
        checkers: [...rules, beginsWith(lease.confirmTimeout / 2)],
        vary: { ...nothing, delays: [300, 600], rates: [0.955], serverSteps: [-1000, 1000], failovers: true }
      }
    )
  },
  renewed: {
    what: "a lease that is renewed four times while another contender waits",
    plan: plan(
      2,
      ["a"],
      process((client) =>
        Effect.andThen(inTurn(client), hold("a", client.index === 0 ? 9000 : 50)).pipe(
          Effect.tapError(() => Effect.sync(() => client.note("failed")))
        )
      ),
      {
        checkers: [...rules, keptThroughOneLoss],
        duration: "20 seconds",
        vary: {
          ...nothing,
          delays: [600],
          losses: true,
          partitions: [5000],
          rates: [0.96],
          where: ({ at, client }) => client === "c1" && at !== "message"
        }
      }
    )
  },
  revived: {
    what: "a grant message that arrives after the next grant, and a server clock that is set back",
    plan: plan(
      2,
      ["a"],
      process((client) =>
        client.index === 0
          ? Effect.andThen(hold("a", 600), Effect.andThen(Effect.sleep("600 millis"), hold("a", 5000)))
          : Effect.andThen(inTurn(client), hold("a", 50))
      ),
      {
        duration: "15 seconds",
        vary: { ...nothing, delays: [4500], serverSteps: [-5000], where: ({ client }) => client === "c2" }
      }
    )
  },
  silent: {
    what: "three contenders for one mutex, the second of which is paused when it gets the grant",
    plan: plan(
      3,
      ["a"],
      process((client) => Effect.andThen(inTurn(client), hold("a", client.index === 0 ? 600 : 50))),
      {
        checkers: [...rules, silenceCosts({ confirm: lease.confirmTimeout, most: lease.confirmTimeout + 200 })],
        duration: "12 seconds",
        vary: { ...nothing, pauses: [5000], where: ({ client }) => client === "c2" }
      }
    )
  },
  detached: {
    what: "protected work in a detached fiber, which takes time to stop when the lease's scope closes",
    plan: plan(
      2,
      ["a"],
      process((client) =>
        Effect.scoped(Effect.gen(function*() {
          yield* inTurn(client)
          const lease = yield* Mutex.acquire("a")
          const fields = { resource: "a", id: lease.id }
          const work = Effect.acquireUseRelease(
            Effect.sync(() => client.note("begin", fields)),
            () => Effect.never,
            () => {
              client.note("stopped", fields)
              return Effect.andThen(Effect.sleep("20 millis"), Effect.sync(() => client.note("end", fields)))
            }
          )
          yield* Effect.forkDetach(lease.protect(work))
          yield* Effect.sleep("50 millis")
        }))
      ),
      { vary: { ...nothing, delays: [1], losses: true, kills: true } }
    )
  },
  ...streamScopes
}
