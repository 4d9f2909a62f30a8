// Each line has one mistake. The compiler must report it on that line, with an error that contains or points to the
// text in the comment.
import { Contender, Leadership, Mutex } from "@effect-simba/core"
import { StreamClient } from "@effect-simba/core/streams"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { Effect } from "effect"

class Jobs extends Contender.Service<Jobs>()("app/Jobs") {}

Mutex.withLock("m", { tiemout: "1 second" }) // tiemout
Mutex.withLockIfAvailable("m", { timeout: "1 second" }) // timeout
Mutex.acquire("m", { timeout: "1 secnod" }) // 1 secnod
Mutex.acquireAll(["a"], { maxHold: true }) // maxHold
Mutex.named("m", { tiemout: "1 second" }) // tiemout
Mutex.withLock("m", { isAlive: Effect.succeed("yes") }) // isAlive
Mutex.inspect("m", { waiters: 1 }) // waiters
Mutex.events("m", { pollIntervall: "1 second" }) // pollIntervall
Mutex.layer({ contender: "a" }) // contender
Mutex.layer({ guard: "5 seconds" }) // guard
Jobs.layer("jobs", { drain: "1 second" }) // drain
Leadership.layerJobs("jobs", [{ name: "a", schedule: "10 minutes", run: Effect.void }]) // schedule
StreamClient.layer({ service: "orders", lease: "2 seconds" }) // lease
StreamClient.run(Effect.void, { retires: 3 }) // retires
RedisMutex.layer({ url: "redis://localhost" }) // url
RedisStreams.layer({ service: "orders", redis: { uri: "redis://localhost" } }) // uri
IoRedis.layer({ sentinels: [] }) // sentinels
