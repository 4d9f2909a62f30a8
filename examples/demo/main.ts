/**
 * Five workers contend for leadership. By default, they are processes that share a Redis: the one at `REDIS_URL`, a
 * `redis-server` from the PATH, or an in-memory Redis in the parent. With `SIMBA_DEMO=memory`, they are fibers that
 * share the in-process store.
 *
 *     npm run demo
 */
import * as plan from "./plan.ts"

console.log(`\nFive workers want to lead "${plan.mutex}", ${plan.terms} times each. Starting ...`)

// Print before importing: loading the libraries takes seconds on a busy machine
await import("./show.ts")
