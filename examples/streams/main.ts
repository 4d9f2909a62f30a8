/**
 * Producers and consumers of data streams, as processes that share a Redis. One consumer is killed, one shuts down
 * cleanly, and a new one joins. Each stream continues where its last owner stopped.
 *
 *     npm run demo:streams
 *
 * Uses the Redis at `REDIS_URL`, else starts a `redis-server` from the PATH, else an in-memory Redis in this process.
 */
import * as plan from "./plan.ts"

console.log(
  `\n${plan.consumers.length + 1} consumers share the data streams of ${plan.producers.length} producers. Starting ...`
)

// Print before importing: loading the libraries takes seconds on a busy machine
await import("./show.ts")
