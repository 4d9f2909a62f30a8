/** Who takes part in the demo, and how long everything lasts. */
import type { Mutex } from "@effect-simba/core"

export const mutex = "demo-leader"

export const workers: ReadonlyArray<string> = ["ada", "ben", "cleo", "dan", "eve"]

/** The number of terms that each worker leads. */
export const terms = 5

/** The worker that is killed while it leads this term. */
export const crash = { worker: "cleo", term: 3, after: "250 millis" } as const

/** The worker that is interrupted while it waits for this term or a later one. */
export const interruption = { worker: "dan", term: 3 } as const

/** The worker that leads this term for longer than `ttl`, so that its lease must be renewed. */
const long = { worker: "eve", term: 2, millis: 1400 }

/**
 * Shorter than the defaults, for a quick recovery from the crash, but long enough for a process to stall for a second
 * and keep its lease.
 */
export const options = { ttl: "1 second", transition: "2 seconds" } satisfies Parameters<typeof Mutex.layer>[0]

/** How long a worker leads, in milliseconds. */
export const termMillis = (worker: string, term: number): number => {
  if (worker === crash.worker && term === crash.term) return 60_000
  if (worker === long.worker && term === long.term) return long.millis
  return 300 + 100 * ((workers.indexOf(worker) * 2 + term * 3) % 4)
}

/** How long a worker rests before it wants to lead again. */
export const rest = "200 millis"

/** The demo fails if the workers take longer than this. */
export const limit = "2 minutes"
