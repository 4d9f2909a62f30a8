/**
 * Makes a leader resign if its clock differs too much from the backend's, because its jobs may use the local clock.
 * `jobRunner` runs the check after each read of the jobs.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Lease } from "../../Lease.ts"
import { instant } from "../lease/instant.ts"
import * as log from "../log.ts"
import type { JobHost } from "./jobHost.ts"
import { type Instants, periodAt } from "./jobSchedule.ts"

/** Minimum time between two resignations because of a wrong clock. */
const patienceMillis = 60 * 60 * 1000

/** Smaller differences between the clocks are always tolerated. */
const toleranceMillis = 10_000

/** Creates the check for one contender, which remembers its last resignation. `schedules`: its jobs' schedules. */
export const make = (host: JobHost, schedules: ReadonlyArray<Instants>) => {
  let resignedAt = -Infinity
  /** `backendTime` comes from the reply to a request that was sent at `sent`, by the local wall clock. */
  return Effect.fnUntraced(function*(lease: Lease, clock: Clock.Clock, sent: number, backendTime: number) {
    const now = instant(clock)
    // A slow reply is not a wrong clock: the backend read its clock at any time between the request and now
    const off = Math.max(sent - backendTime, backendTime - now.wall)
    if (off <= toleranceMillis || now.monotonic - resignedAt < patienceMillis) return
    const shortest = Math.min(...schedules.map(({ next }) => periodAt(next, backendTime)))
    if (off <= shortest / 2) return
    resignedAt = now.monotonic
    yield* log.warning(
      `This node's clock differs from the backend's by ${Duration.format(Duration.millis(off))}, more than half ` +
        "a period of its jobs. Another node may lead; if none does, jobs run by the backend's time"
    )
    host.resign(lease)
  })
}
