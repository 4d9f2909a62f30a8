/**
 * Computes the instants of a cron expression in a time zone. `jobSchedule` compiles the expression.
 *
 * An hour field that begins with `*` matches every hour that passes: both hours when clocks are set back, and none that
 * clocks skip. Any other hour field specifies times of day. If a time occurs twice, the first occurrence is used; if it
 * is skipped, it moves later by as much as the clocks change.
 */
import * as Cron from "effect/Cron"
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"

const secondMillis = 1000
const hourMillis = 60 * 60 * secondMillis
const weekMillis = 7 * 24 * hourMillis

/** No time zone has ever changed its clocks by more than a day. */
const longestChangeMillis = 25 * hourMillis

/** Returns the first instant after the argument, both in milliseconds. */
export type Next = (after: number) => number

/** Computes the next instant of an expression. Throws if the expression never matches. */
export const make = (cron: Cron.Cron, zone: DateTime.TimeZone, isEveryHour: boolean): Next => {
  // Treat local time as UTC, which has no clock changes
  const onWall: Cron.Cron = Object.assign(Object.create(Object.getPrototypeOf(cron)), cron, {
    tz: Option.some(DateTime.zoneMakeNamedUnsafe("UTC"))
  })
  const offsetAt = (instant: number) => DateTime.zonedOffset(DateTime.makeZonedUnsafe(instant, { timeZone: zone }))

  /** Finds when the offset changes between two instants with different offsets. */
  const changeBetween = (before: number, after: number) => {
    const offset = offsetAt(before)
    let [low, high] = [before, after]
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (offsetAt(middle) === offset) low = middle
      else high = middle
    }
    return high
  }

  const nextChange = (from: number, offset: number, until: number) => {
    for (let low = from; low < until;) {
      const high = Math.min(until, low + weekMillis)
      if (offsetAt(high) !== offset) return changeBetween(low, high)
      low = high
    }
    return Infinity
  }

  /**
   * The offsets that convert scheduled local times to instants near a clock change, and the instants up to which they
   * apply.
   */
  const regimeAt = (instant: number, offset: number): readonly [offsets: ReadonlyArray<number>, until: number] => {
    const before = offsetAt(instant - longestChangeMillis)
    if (before === offset) return [[offset], Infinity]
    const end = changeBetween(instant - longestChangeMillis, instant) + Math.abs(offset - before)
    if (instant >= end) return [[offset], Infinity]
    return [isEveryHour ? [offset] : offset > before ? [before, offset] : [], end]
  }

  const next: Next = (after) => {
    let from = (Math.floor(after / secondMillis) + 1) * secondMillis
    while (true) {
      const offset = offsetAt(from)
      const [offsets, until] = regimeAt(from, offset)
      const candidates = offsets.map((offset) => Cron.next(onWall, from + offset - 1).getTime() - offset)
      const candidate = Math.min(until, ...candidates)
      const change = nextChange(from, offset, candidate)
      if (candidate < until && candidate < change) return candidate
      from = Math.ceil(Math.min(until, change) / secondMillis) * secondMillis
    }
  }
  return next
}

/** The last instant after `from` and no later than `until`, if any. */
export const last = (next: Next, from: number, until: number): number | undefined => {
  let found = Infinity
  for (let span = 60 * secondMillis; found > until; span *= 4) {
    const start = Math.max(from, until - span)
    found = next(start)
    if (start === from && found > until) return undefined
  }
  let end = until
  while (found < end) {
    const middle = Math.floor((found + end) / 2)
    const following = next(middle)
    if (following <= until) found = following
    else end = middle
  }
  return found
}
