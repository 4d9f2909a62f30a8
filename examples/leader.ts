/**
 * A service in which one process leads. The leader does some work, a cron job runs once in the whole fleet, and a
 * health endpoint shows who leads. Start several processes on one Redis, then stop the leader.
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

/** The fleet's leadership, as a service that other layers use. */
class Leader extends Contender.Service<Leader>()("example/Leader") {}

/**
 * Runs only in the leader, and is interrupted when the leadership is lost. If it fails, another process becomes the
 * leader.
 */
const Cleaner = Effect.log("cleaning").pipe(
  Effect.repeat(Schedule.fixed("1 second")),
  Leadership.whileLeader(Leader),
  Effect.forkScoped,
  Layer.effectDiscard
)

/** Runs once a night in the whole fleet, by Redis's clock, even if the leader changes in the meantime. */
const Nightly = Leadership.layerJobs("nightly", [
  { name: "report", schedule: Leadership.cron("0 3 * * *"), catchUp: "1 hour", run: Effect.log("reporting") }
])

/** Returns 200 in both roles: a standby is as healthy as the leader. */
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
 * For rolling updates: takes this process out of the queue, so that the leadership moves only once, to a new process.
 */
const Leave = HttpRouter.add("POST", "/leave", Effect.as(Leader.use(({ leave }) => leave), HttpServerResponse.empty()))

const Live = Layer.mergeAll(Cleaner, Nightly, HttpRouter.serve(Layer.merge(Health, Leave))).pipe(
  Layer.provide(Leader.layer("cleaning")),
  Layer.provide(RedisMutex.layerFromEnv()),
  Layer.provide([HttpServerLive, RedisEnv])
)

// On SIGTERM, the work ends before the leadership passes to another process
NodeRuntime.runMain(Layer.launch(Live))
