/**
 * effect-simba and Simba contenders on the same mutexes, under every fault. What cannot hold beside contenders
 * that know neither tokens nor turns is left out: first come, first served, and their tokens. What does hold is that no
 * grant is wasted without a reason, and that effect-simba is served in turn, as far as the others let it.
 */
import { Checker, type Simulation } from "@effect-simba/testkit"
import * as SimbaContender from "@effect-simba/testkit/SimbaContender"
import { Duration, Effect } from "effect"
import { confirm, type Settings, transition, ttl } from "./behaviour.ts"
import { draws } from "./draws.ts"
import { freeMutexesAreTaken } from "./freeWaits.ts"
import { loadOf, lock, mutexPlan, type Overrides, program, recovery } from "./mutexPlan.ts"

export const isOwn = (id: string) => /^\d+-[0-9a-z]{12}:/.test(id)

/** The release of a Simba contender names only the owner key and its id; its acquire and its guard also a time. */
const simbaScript = (args: ReadonlyArray<string>, length: number) => {
  const resource = args[2] === "1" && args.length === length
    ? lock.resources.find((resource) => lock.ownerKey(resource) === args[3])
    : undefined
  return resource === undefined ? [] : [{ resource, id: args[4]! }]
}

export const mixedLock: Simulation.LockModel = {
  ...lock,
  asked: (args, reply) => [...simbaScript(args, 6), ...[lock.asked?.(args, reply) ?? []].flat()],
  released: (args, reply) => [
    ...(reply instanceof Error ? [] : simbaScript(args, 5)),
    ...[lock.released?.(args, reply) ?? []].flat()
  ],
  // Simba contenders do not set an expiry on the queue
  keep: (key, expires) => key.endsWith(":contender") || (lock.keep?.(key, expires) ?? false)
}

/** Grants to contenders that have no token do not concern the checker. */
export const withoutSimba = (checker: Checker.Checker): Checker.Checker => ({
  name: `${checker.name}, in effect-simba`,
  start: (view) => {
    const inner = checker.start(view)
    return {
      ...inner,
      onEvent: (event) => {
        if (event._tag !== "Owner" || event.to === undefined || isOwn(event.to)) inner.onEvent?.(event)
      }
    }
  }
})

interface Simba {
  /** The shortest and the longest work, in milliseconds. */
  readonly holds: readonly [number, number]
  /** Whether they repeatedly come in the middle, stay for a while and go. */
  readonly comeAndGo: boolean
}

/** Busy contenders return at once. */
const simba = (client: Simulation.Client, resources: ReadonlyArray<string>, { comeAndGo, holds }: Simba) => {
  const [shortest, longest] = holds
  const upTo = (millis: number) => Duration.millis(client.random() * millis)
  return Effect.forEach(
    resources,
    (mutex, index) => {
      const id = `${index + 1}:${client.generation}@${client.name}`
      const contending = SimbaContender.contend({
        mutex,
        id,
        ttl,
        transition,
        rest: upTo(300),
        lead: Effect.suspend(() => {
          client.note("granted", { resource: mutex, id })
          return Effect.sleep(Duration.millis(shortest + client.random() * (longest - shortest)))
        })
      })
      return comeAndGo
        ? Effect.forever(Effect.andThen(
          Effect.suspend(() => Effect.sleep(upTo(4000))),
          Effect.suspend(() => Effect.timeoutOption(contending, upTo(4000)))
        ))
        : contending
    },
    { concurrency: "unbounded", discard: true }
  ).pipe(Effect.scoped, Effect.catchTag("BackendError", () => Effect.sleep("500 millis")))
}

/**
 * Beside Simba contenders waiters poll every 2 seconds, and the first waiter after a confirm period. The messages and
 * requests of a poll and of the previous poll have delays.
 */
const pollBound = 2000 + confirm + 700

/** If nobody could announce a Simba contender, a waiter sleeps as long as the last lease that it knew. */
const sleepBound = 4000 + transition + pollBound + confirm

const simbaClients = 2

/**
 * Each Simba contender may be in the queue before effect-simba, with a ticket of whole seconds, and a second time,
 * because a place survives an acquisition. The rest are barges without a race: the notified place belonged to a Simba
 * contender that rests or has left.
 */
const barges = 2 * simbaClients + 8

/**
 * A Simba contender that releases and contends again at once races with the waiter that it notified: each wins half of
 * the races. A message and a request take up to a millisecond each when the faults are over.
 */
const race = Duration.millis(2)

/** The slowest message, the request that follows it, and the delays of the network itself. */
const notice = Duration.millis(200 + 30 + 5)

/** The longest turn of a process, its last work, and the longest time until somebody notices that it is over. */
const turnOf = ({ localTurn }: Settings) => Duration.millis(localTurn + 4 * ttl + sleepBound)

type OwnOf = (settings: Settings) => ReturnType<typeof program>

const fleet = (seed: number | string, isBrief: boolean, ownOf: OwnOf = program) => {
  const habits: Simba = { holds: isBrief ? [1, 20] : [20, 1520], comeAndGo: draws(`mixed/${seed}`)("arrivals") < 0.5 }
  const load = loadOf(seed).settings
  const settings = { ...load, forces: 0, countsSubscribers: true, holds: isBrief ? 20 : load.holds }
  const own = ownOf(settings)
  return {
    ...mutexPlan(seed),
    clients: 4,
    program: (client: Simulation.Client) =>
      client.index < simbaClients ? simba(client, settings.resources, habits) : own(client),
    lock: mixedLock,
    checkers: [
      Checker.rules.oneOwner,
      withoutSimba(Checker.rules.tokensGrow),
      Checker.rules.ensureIsTruthful,
      Checker.rules.workIsProtected,
      Checker.rules.releasedAfterWork,
      Checker.rules.workNeverOverlaps,
      Checker.rules.writesAreFenced,
      Checker.rules.noFlapping({ recovery }),
      Checker.rules.servedInTurn({
        barges,
        turn: turnOf(settings),
        recovery,
        notice,
        race,
        foreign: (id) => !isOwn(id),
        // Simba contenders queue with whole seconds: they stay ahead of a waiter of the same second
        foreignPlace: (serverNow) => Math.floor(serverNow / 1000) * 1e6
      }),
      Checker.rules.nobodyOversleeps({
        bound: Duration.millis(pollBound),
        afterLoss: Duration.millis(sleepBound),
        recovery
      }),
      Checker.rules.everybodyIsServed,
      Checker.rules.nothingIsLeft
    ]
  } as const
}

export const mixedFleetPlan = (seed: number | string, overrides?: Overrides, ownOf?: OwnOf) => ({
  ...fleet(seed, draws(`mixed/${seed}`)("brief") < 0.5, ownOf),
  ...overrides
} as const)

/** Work of milliseconds and no failures. Simba contenders that leave do not remove their places from the queue. */
export const calmFleetPlan = (seed: number | string, overrides?: Overrides, ownOf?: OwnOf) => {
  const plan = fleet(seed, true, ownOf)
  const draw = draws(`calm/${seed}`)
  return {
    ...plan,
    enabled: (["requestDelay", "replyDelay", "messageDelay"] as const).filter((fault) => draw(fault) < 0.5),
    checkers: [...plan.checkers, freeMutexesAreTaken(confirm + Duration.toMillis(notice))],
    ...overrides
  } as const
}
