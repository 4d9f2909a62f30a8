/**
 * Producers and consumers of data streams, as processes on one Redis. One consumer is killed, one shuts down cleanly,
 * and one joins. The others continue each stream where its last owner stopped.
 *
 *     npm run demo:streams
 *
 * It uses the Redis at `REDIS_URL`, or starts a `redis-server` from the PATH, or an in-memory Redis in this process.
 */
import * as plan from "./plan.ts"

console.log(
  `\n${plan.consumers.length + 1} consumers share the data streams of ${plan.producers.length} producers. Starting ...`
)

// Imported only now: loading the libraries takes seconds on a busy machine
await import("./show.ts")
