/** A fleet of processes that share one mutex. Each acquires it when ordered to, and works while holding it. */
import { type FencingToken, type Lease, Mutex } from "@effect-simba/core"
import * as RedisFence from "@effect-simba/redis/RedisFence"
import * as RedisSimulation from "@effect-simba/redis/RedisSimulation"
import type { Simulation } from "@effect-simba/testkit"
import * as SimbaContender from "@effect-simba/testkit/SimbaContender"
import { Duration, Effect } from "effect"
import { type Desk, following, type Order } from "./desk.ts"

export const mutex = "report"

/** The resource that the mutex protects. It rejects tokens smaller than the largest so far. */
export const ledger = "ledger"

/** The wait queue on the server, as `docs/protocol.md` describes it. */
export const queueKey = `simba:{${mutex}}:contender`

export const lease = { ttl: 3000, transition: 2000, confirm: 1500 } as const

export const config: Mutex.Options = {
  ttl: lease.ttl,
  transition: lease.transition,
  confirmTimeout: lease.confirm,
  commandTimeout: 1000
}

export interface Habits {
  /** Returns the order that a process gets when it starts, if any. */
  readonly first?: ((client: Simulation.Client) => Order | undefined) | undefined
  /** The interval at which work writes to the ledger, in milliseconds. */
  readonly writes?: number | undefined
  /** The names of processes that run the original Simba. */
  readonly simba?: ReadonlyArray<string> | undefined
}

/** Writes to the ledger. A write takes a while and cannot be interrupted, like a call into a driver. */
const writing = (client: Simulation.Client, held: FencingToken.Bearer, every: number) =>
  Effect.sleep(Duration.millis(every)).pipe(
    Effect.andThen(RedisFence.set(held, ledger, client.name)),
    Effect.matchEffect({
      onSuccess: () => Effect.sync(() => client.note("wrote", { token: held.token })),
      onFailure: (error) =>
        Effect.sync(() =>
          error._tag === "StaleToken"
            ? client.note("refused", { token: held.token, largest: error.largest })
            : client.note("unwritten", { token: held.token })
        )
    }),
    Effect.uninterruptible,
    Effect.forever
  )

/**
 * Records how much time is left on the leader's lease. The leader itself reads it, because a read by another process
 * could end an expired lease early and change the history.
 */
const watching = (desk: Desk, client: Simulation.Client, held: Lease.Lease) =>
  Effect.map(held.timeLeft, (left) => {
    desk.timesLeft.set(client.name, { left: Duration.toMillis(left), at: desk.now() })
  }).pipe(Effect.andThen(Effect.sleep("100 millis")), Effect.forever)

const effectSimba = (desk: Desk, { first, writes }: Habits) => (client: Simulation.Client) =>
  Effect.gen(function*() {
    const inbox = yield* desk.open(client)
    const session = (hold: number | undefined) =>
      Mutex.withLock(mutex)((held) =>
        Effect.gen(function*() {
          yield* Effect.forkChild(watching(desk, client, held))
          const work = writes === undefined
            ? Effect.never
            : writing(client, { resource: ledger, token: held.token }, writes)
          yield* hold === undefined ? work : Effect.timeoutOption(work, Duration.millis(hold))
        }).pipe(Effect.ensuring(Effect.sync(() => desk.timesLeft.delete(client.name))))
      ).pipe(
        Effect.catchTag(
          "LeaseLost",
          ({ reason, token }) => Effect.sync(() => client.note("lost", { resource: mutex, token, reason: reason._tag }))
        ),
        Effect.catch((error) =>
          Effect.andThen(
            Effect.sync(() => client.note("failed", { error: error._tag })),
            Effect.sleep("1 second")
          )
        )
      )
    return yield* following(inbox, first?.(client), session)
  })

/** A process that runs the original Simba. It contends until its process ends, and its events are recorded. */
const simba = ({ first }: Habits) => (client: Simulation.Client) => {
  const order = first?.(client)
  const { hold, rest } = order?._tag === "Acquire" ? order : {}
  const id = `${client.index}:${client.name}.${client.generation}@simba`
  let count = 0
  const note = (kind: string, fields: Readonly<Record<string, string | number>> = {}) =>
    client.note(kind, { resource: mutex, ...fields })
  const wait = () => note("waiting", { wait: `simba ${++count}` })
  const waited = (served: boolean) => note("waited", { wait: `simba ${count}`, ...(served ? { served: 1 } : {}) })
  const lead = Effect.acquireUseRelease(
    Effect.sync(() => {
      waited(true)
      note("granted", { id })
      note("begin", { id })
    }),
    () => Effect.sleep(Duration.millis(hold ?? 2000)),
    () => Effect.sync(() => note("end", { id }))
  )
  return Effect.andThen(
    Effect.sync(wait),
    SimbaContender.contend({
      mutex,
      id,
      ttl: lease.ttl,
      transition: lease.transition,
      rest: Duration.millis(rest ?? 1000),
      lead: Effect.ensuring(lead, Effect.sync(wait))
    })
  )
}

/** Returns the options for a simulation of this fleet. */
export const options = (desk: Desk, habits: Habits, base: {
  readonly seed: string
  readonly clients: number
}) => {
  const own = effectSimba(desk, habits)
  const theirs = simba(habits)
  return RedisSimulation.make({
    ...base,
    program: (client) => habits.simba?.includes(client.name) === true ? theirs(client) : own(client),
    mutexes: [mutex],
    config,
    checkers: [],
    network: { requestDelay: [8, 14], replyDelay: [8, 14] },
    duration: Infinity
  })
}
