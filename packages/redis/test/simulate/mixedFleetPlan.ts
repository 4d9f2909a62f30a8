/**
 * Ours and stock Simba contenders on the same mutexes, under every fault there is. What cannot hold beside contenders
 * that know neither tokens nor turns is left out: first come, first served, and tokens of theirs.
 */
import type { Simulation } from "@effect-simba/testkit"
import { Checkers, StockSimba } from "@effect-simba/testkit"
import { Duration, Effect } from "effect"
import { loadOf, lock, mutexPlan, program, recovery } from "./mutexPlan.ts"

const ttl = 2000
const transition = 2500
const confirm = 500

const isOurs = (id: string) => /^\d+-[0-9a-z]{12}:/.test(id)

/** The release of a stock contender names the owner key alone, and its id. */
const stockRelease = (args: ReadonlyArray<string>) => {
  const resource = args[2] === "1" && args.length === 5
    ? lock.resources.find((resource) => lock.ownerKey(resource) === args[3])
    : undefined
  return resource === undefined ? undefined : { resource, id: args[4]! }
}

const mixedLock: Simulation.LockModel = {
  ...lock,
  released: (args, reply) => lock.released?.(args, reply) ?? (reply instanceof Error ? undefined : stockRelease(args)),
  // Stock contenders give the queue no expiry
  keep: (key, expires) => key.endsWith(":contender") || (lock.keep?.(key, expires) ?? false)
}

/** Grants to contenders that have no token do not concern the checker. */
const oursOnly = (checker: Checkers.Checker): Checkers.Checker => ({
  name: `${checker.name}, among ours`,
  start: (view) => {
    const inner = checker.start(view)
    return {
      ...inner,
      onEvent: (event) => {
        if (event._tag !== "Owner" || event.to === undefined || isOurs(event.to)) inner.onEvent?.(event)
      }
    }
  }
})

/** Busy ones: what they hold they hold for long, and they come back at once. */
const stock = (client: Simulation.Client, resources: ReadonlyArray<string>) =>
  Effect.all(
    resources.map((mutex, index) =>
      StockSimba.contend({
        mutex,
        id: `${index + 1}:${client.generation}@${client.name}`,
        ttl,
        transition,
        rest: Duration.millis(client.random() * 300),
        lead: Effect.suspend(() => Effect.sleep(Duration.millis(20 + client.random() * 1500)))
      })
    ),
    { concurrency: "unbounded", discard: true }
  ).pipe(Effect.scoped, Effect.catchTag("BackendError", () => Effect.sleep("500 millis")))

/** Who looked before a stock contender came sleeps as long as the lease that it saw then. */
const sleepBound = Duration.millis(4000 + transition + 2000 + 2 * confirm + 700)

export const mixedFleetPlan = (seed: number | string, overrides?: Partial<Simulation.Options<never>>) => {
  const { settings } = loadOf(seed)
  const ours = program(settings)
  return {
    ...mutexPlan(seed),
    clients: 4,
    program: (client: Simulation.Client) =>
      client.name === "c1" || client.name === "c2" ? stock(client, settings.resources) : ours(client),
    lock: mixedLock,
    checkers: [
      Checkers.oneOwner,
      oursOnly(Checkers.tokensGrow),
      Checkers.ensureTellsTheTruth,
      Checkers.workIsProtected,
      Checkers.releasedAfterWork,
      Checkers.nobodyOversleeps({ bound: sleepBound, afterLoss: sleepBound, recovery }),
      Checkers.everybodyIsServed,
      Checkers.nothingIsLeft
    ],
    ...overrides
  } as const
}
