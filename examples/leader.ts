/**
 * A service in which one process leads: a Layer for the leadership, work of the leader, and a health endpoint that
 * shows who leads. Start it several times on one Redis, and stop the leader.
 *
 *     node examples/leader.ts
 *     REDIS_URL=redis://localhost:6379 PORT=3001 node examples/leader.ts
 *     curl http://localhost:3000/health
 *     curl -X POST http://localhost:3000/leave
 */
import { Contender } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Schedule } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpServerLive } from "./shared/httpServer.ts"
import { redisUrl } from "./shared/redisUrl.ts"

/** The leadership of the fleet, as a service that others build on. */
class Leader extends Contender.Service<Leader>()("example/Leader") {}

/** Runs on the leading process only. A loss of the leadership interrupts it, and its failure lets another process lead. */
const Cleaner = Layer.effectDiscard(Effect.gen(function*() {
  const leader = yield* Leader
  const cleaning = Effect.repeat(Effect.log("cleaning"), Schedule.fixed("1 second"))
  yield* Effect.forkScoped(leader.whileLeader(cleaning))
}))

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

/** Before a rolling update: this process waits behind all others, so that the leadership moves to a new one, once. */
const Leave = HttpRouter.add(
  "POST",
  "/leave",
  Effect.gen(function*() {
    const leader = yield* Leader
    yield* leader.leave
    return HttpServerResponse.empty()
  })
)

const MutexLive = Layer.unwrap(Effect.map(redisUrl, (url) => RedisMutex.layer({ redis: { url } })))

const Live = Layer.merge(Cleaner, HttpRouter.serve(Layer.merge(Health, Leave))).pipe(
  Layer.provide(Leader.layer("cleaning")),
  Layer.provide(MutexLive),
  Layer.provide(HttpServerLive)
)

// At a SIGTERM the work ends first, then the leadership passes to another process
NodeRuntime.runMain(Layer.launch(Live))
