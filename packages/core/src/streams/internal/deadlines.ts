/** The watch over local deadlines and over the progress of handlers: one loop over all that is owned. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { sleepUntil } from "../../internal/lease/sleepUntil.ts"
import type { StreamConfig } from "../StreamConfig.ts"
import type { StreamTable } from "./streamTable.ts"

/** A suspended machine stops monotonic timers, so deadlines are looked at this often at least. Milliseconds. */
const watch = 1000

export const loop = (table: StreamTable, config: StreamConfig): Effect.Effect<never> => {
  const patience = config.progressTimeout === undefined ? Infinity : Duration.toMillis(config.progressTimeout)
  return Effect.forever(Effect.suspend(() => {
    table.deadlineChanged.closeUnsafe()
    const now = table.now()
    let nearest = table.size === 0 ? Infinity : watch
    for (const owned of table.all()) {
      table.check(owned, now)
      if (!owned.isOpen()) continue
      nearest = Math.min(nearest, owned.left(now))
      if (owned.progressed === undefined || owned.waiting > 0) continue
      const stalls = owned.progressed + patience - now.monotonic
      if (stalls <= 0) table.lose(owned, "Stalled")
      else nearest = Math.min(nearest, stalls)
    }
    table.nextDeadline = now.monotonic + nearest
    return sleepUntil(table.nextDeadline, table.deadlineChanged)
  }))
}
