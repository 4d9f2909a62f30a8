/**
 * The `mixed-fleet` and `calm-fleet` plans for `pnpm simulate`: effect-simba and Simba contenders share mutexes. Only
 * effect-simba's tokens are checked, because Simba contenders have none. Simba contenders may overtake waiters, but
 * only a bounded number of times.
 */
import { Checker, type Simulation } from "@effect-simba/testkit"
import * as SimbaContender from "@effect-simba/testkit/SimbaContender"
import { Duration, Effect } from "effect"
import { confirm, type Settings, transition, ttl } from "./behaviour.ts"
import { draws } from "./draws.ts"
import { freeMutexesAreTaken } from "./freeWaits.ts"
import { loadOf, lock, mutexPlan, type Overrides, program, recovery } from "./mutexPlan.ts"

export const isOwn = (id: string) => /^\d+-[0-9a-z]{12}:/.test(id)

/**
 * Recognizes Simba contenders' scripts by their number of arguments. A release has the owner key and an id; an acquire
 * or a renewal has a duration too.
 */
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
  // Simba contenders create the queue without an expiry
  keep: (key, expires) => key.endsWith(":contender") || (lock.keep?.(key, expires) ?? false)
}

/** Hides grants to Simba contenders from a checker, because those grants have no tokens. */
export const withoutSimba = (checker: Checker.Checker): Checker.Checker => ({
  name: `${checker.name} (effect-simba only)`,
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
  /** The minimum and maximum duration of work, in milliseconds. */
  readonly holds: readonly [number, number]
  /** Whether contenders repeatedly arrive, stay for up to 4 seconds, and leave. */
  readonly comeAndGo: boolean
}

/** The program of a client that runs one Simba contender per mutex. */
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
 * Maximum time between two polls by a waiter that knows about Simba contenders. It polls every 2 seconds, or every
 * confirm period while it is the first waiter. The extra 700 ms allows for delayed requests and messages of both polls.
 */
const pollBound = 2000 + confirm + 700

/**
 * Maximum sleep of a waiter that does not know about a Simba contender: until the latest known lease must have ended.
 */
const sleepBound = 4000 + transition + pollBound + confirm

const simbaClients = 2

/**
 * How many times Simba contenders may overtake a waiter without a race. Each may do so twice: because its tickets are
 * whole seconds, and because it keeps its place in the queue when it acquires the mutex. The other eight times allow
 * for notified Simba contenders that are pausing or have left.
 */
const barges = 2 * simbaClients + 8

/**
 * A Simba contender that releases and contends again races with the waiter that it notified. After the faults, the
 * message to the waiter and the waiter's request take up to a millisecond each.
 */
const race = Duration.millis(2)

/**
 * Maximum time from a notification until the server receives the waiter's request: the message, request and network
 * delays.
 */
const notice = Duration.millis(200 + 30 + 5)

/** Maximum time until the next waiter gets the mutex: a process's turn, the last work in it, and the waiter's sleep. */
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
        // Simba contenders' tickets are whole seconds, so they precede waiters from the same second
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

/**
 * A fleet with short work and without failures, disturbed only by delays and by Simba contenders that leave their
 * places in the queue.
 */
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
