/**
 * A service in which one process leads: work of the leader, a cron job of the fleet, and a health endpoint that shows
 * who leads. Start it several times on one Redis, and stop the leader.
 *
 *     node examples/leader.ts
 *     REDIS_URL=redis://localhost:6379 PORT=3001 node examples/leader.ts
 *     curl http://localhost:3000/health
 *     curl -X POST http://localhost:3000/leave
 */
import { Contender, Leadership } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Schedule } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpServerLive } from "./shared/httpServer.ts"
import { RedisEnv } from "./shared/redisEnv.ts"

/** The leadership of the fleet, as a service that others build on. */
class Leader extends Contender.Service<Leader>()("example/Leader") {}

/**
 * Runs on the leading process only. A loss of the leadership interrupts it, and its failure lets another process lead.
 */
const Cleaner = Effect.log("cleaning").pipe(
  Effect.repeat(Schedule.fixed("1 second")),
  Leadership.whileLeader(Leader),
  Effect.forkScoped,
  Layer.effectDiscard
)

/** Once each night in the whole fleet, by the clock of Redis, even if the leader changes meanwhile. */
const Nightly = Leadership.layerJobs("nightly", [
  { name: "report", schedule: Leadership.cron("0 3 * * *"), catchUp: "1 hour", run: Effect.log("reporting") }
])

/** Each process is healthy, whether it leads or not: 200 in both roles. */
const Health = HttpRouter.add(
  "GET",
  "/health",
  Effect.gen(function*() {
    const leader = yield* Leader
    const { _tag, after } = yield* leader.state
    return HttpServerResponse.jsonUnsafe({ role: _tag === "Leading" ? "leader" : "standby", leader: after ?? null })
  })
)

/**
 * For a rolling update: this process moves behind all others in the queue, so that the leadership moves only once, to a
 * new process.
 */
const Leave = HttpRouter.add("POST", "/leave", Effect.as(Leader.use(({ leave }) => leave), HttpServerResponse.empty()))

const Live = Layer.mergeAll(Cleaner, Nightly, HttpRouter.serve(Layer.merge(Health, Leave))).pipe(
  Layer.provide(Leader.layer("cleaning")),
  Layer.provide(RedisMutex.layerFromEnv()),
  Layer.provide([HttpServerLive, RedisEnv])
)

// At a SIGTERM the work ends first, then the leadership passes to another process
NodeRuntime.runMain(Layer.launch(Live))
