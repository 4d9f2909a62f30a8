/**
 * Five workers contend for leadership. With `REDIS_URL`, or a `redis-server` on the PATH, they are processes that share
 * a real Redis; otherwise, or with `SIMBA_DEMO=memory`, they are fibers that share the in-process store.
 *
 *     npm run demo
 */
import * as plan from "./plan.ts"

console.log(`\nFive workers want to lead "${plan.mutex}", ${plan.terms} times each. Starting ...`)

// Imported only now: loading the libraries takes seconds on a busy machine
await import("./show.ts")
