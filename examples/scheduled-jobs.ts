/**
 * Background jobs in a service that runs in several processes. Each job runs in one process at a time.
 *
 *     node examples/scheduled-jobs.ts
 *     LOCKS=redis REDIS_URL=redis://localhost:6379 node examples/scheduled-jobs.ts
 *
 * Needs Node 22.19 or newer and a clone of this repository.
 */
import { Contender, Leadership } from "@effect-simba/core"
import { NodeRuntime } from "@effect/platform-node"
import { Context, DateTime, Effect, Layer, Ref, Schedule } from "effect"
import { MutexLive } from "./service.ts"

/** Stands for the database that the jobs work on. */
export class Shop extends Context.Service<Shop, {
  readonly did: (what: string) => Effect.Effect<void>
  readonly done: Effect.Effect<ReadonlyArray<string>>
}>()("example/Shop") {
  static readonly layer = Layer.effect(
    Shop,
    Effect.map(Ref.make<ReadonlyArray<string>>([]), (ref) => ({
      did: (what) => Effect.andThen(Effect.log(what), Ref.update(ref, (all) => [...all, what])),
      done: Ref.get(ref)
    }))
  )
}

export const Jobs = Leadership.layerJobs("shop-jobs", [
  // Runs every 30 seconds, once in the whole fleet, by Redis's clock, even if the leader changes
  {
    name: "import prices",
    schedule: Leadership.every("30 seconds"),
    run: ({ lease }) => Shop.use((shop) => shop.did(`imported prices with token ${lease.token}`))
  },
  // Runs every full minute, or up to 45 seconds later if the leader was lost. A failed run is retried by another node.
  {
    name: "report",
    schedule: Leadership.cron("* * * * *", { timeZone: "Europe/Berlin" }),
    catchUp: "45 seconds",
    attempts: 3,
    onError: "stepDown",
    maxRun: "20 seconds",
    run: ({ scheduledAt }) => Shop.use((shop) => shop.did(`reported on ${DateTime.formatIso(scheduledAt)}`))
  }
])

class Cleaning extends Contender.Service<Cleaning>()("example/Cleaning") {}

// Runs on the leader, on any Effect Schedule: here, ten seconds after the previous run ended
export const Cleaner = Shop.use((shop) => shop.did("expired carts")).pipe(
  Effect.repeat(Schedule.spaced("10 seconds")),
  Leadership.whileLeader(Cleaning),
  Effect.forkScoped,
  Layer.effectDiscard,
  Layer.provide(Cleaning.layer("cleaning"))
)

export const Live = Layer.merge(Jobs, Cleaner).pipe(Layer.provideMerge(Shop.layer), Layer.provide(MutexLive))

if (import.meta.main) NodeRuntime.runMain(Layer.launch(Live))
