/**
 * Background jobs of a service that runs in several processes. Each job runs in one of them at a time.
 *
 *     node examples/scheduled-jobs.ts
 *     LOCKS=redis REDIS_URL=redis://localhost:6379 node examples/scheduled-jobs.ts
 *
 * With Node 24.2 or newer, in a clone of this repository.
 */
import { Leadership } from "@effect-simba/core"
import { NodeRuntime } from "@effect/platform-node"
import { Context, Effect, Layer, Ref, Schedule } from "effect"
import { MutexLive } from "./service.ts"

/** Stands for the data of the jobs. */
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
  // Ten seconds after the end of the last run. A failure is logged, and the next run comes on time
  {
    name: "expire carts",
    schedule: Leadership.fixedDelay("10 seconds", { initialDelay: "2 seconds" }),
    run: Shop.use((shop) => shop.did("expired carts"))
  },
  // Once every 30 seconds in the whole fleet, by the clock of Redis, even if the leader changes
  {
    name: "import prices",
    schedule: Leadership.fixedRate("30 seconds"),
    oncePerPeriod: true,
    run: (lease) => Shop.use((shop) => shop.did(`imported prices with token ${lease.token}`))
  },
  // Once at every full minute, and up to 45 seconds late if the leader was lost then
  {
    name: "report",
    schedule: Leadership.cron("* * * * *", { timeZone: "Europe/Berlin" }),
    oncePerPeriod: true,
    catchUp: "45 seconds",
    onError: "stepDown",
    run: Shop.use((shop) => shop.did("reported"))
  },
  // Any other schedule
  { name: "tidy", schedule: Schedule.spaced("20 seconds").pipe(Schedule.jittered), run: Effect.log("tidied") }
])

export const Live = Jobs.pipe(Layer.provideMerge(Shop.layer), Layer.provide(MutexLive))

if (import.meta.main) NodeRuntime.runMain(Layer.launch(Live))
