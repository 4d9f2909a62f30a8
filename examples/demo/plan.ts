/** Who takes part in the demo, and how long everything lasts. */
import type { Mutex } from "@effect-simba/core"

export const mutex = "demo-leader"

export const workers: ReadonlyArray<string> = ["ada", "ben", "cleo", "dan", "eve"]

/** How often each worker wants to lead. */
export const terms = 5

/** Killed while it leads, in this term. */
export const crash = { worker: "cleo", term: 3, after: "250 millis" } as const

/** Interrupted while it waits, for this term or a later one. */
export const interruption = { worker: "dan", term: 3 } as const

/** Leads once for longer than `ttl`, so that its lease is renewed. */
const long = { worker: "eve", term: 2, millis: 1400 }

/** Shorter than the defaults, so that a crash costs little. A process that stalls for a second keeps its lease. */
export const options = { ttl: "1 second", transition: "2 seconds" } satisfies Parameters<typeof Mutex.layer>[0]

/** How long a worker leads, in milliseconds. */
export const termMillis = (worker: string, term: number): number => {
  if (worker === crash.worker && term === crash.term) return 60_000
  if (worker === long.worker && term === long.term) return long.millis
  return 300 + 100 * ((workers.indexOf(worker) * 2 + term * 3) % 4)
}

/** How long a worker rests before it wants to lead again. */
export const rest = "200 millis"

/** The demo fails if the workers have not finished by then. */
export const limit = "2 minutes"
