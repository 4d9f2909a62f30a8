/** Schedules that know their period, so that a fleet can agree on it. */
import * as Cron from "effect/Cron"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import { InvalidConfig } from "../../SimbaError.ts"
import { notNegative, positive, refuse } from "../optionChecks.ts"

export const TypeId = "~@effect-simba/core/Leadership/Periodic" as const

/** In milliseconds. */
export type Period =
  | { readonly _tag: "Rate" | "Delay"; readonly every: number; readonly initialDelay: number }
  | { readonly _tag: "Cron"; readonly cron: Cron.Cron }

export interface Periodic extends Schedule.Schedule<number, unknown, InvalidConfig> {
  readonly [TypeId]: Effect.Effect<Period, InvalidConfig>
}

/** A clock that is set back by less stays ahead of what has run; one that is set back by more was wrong before. */
const believed = 3 * 60 * 60 * 1000

/** Finite, and not negative. Milliseconds. */
export const delay = (option: string, input: Duration.Input): Effect.Effect<number, InvalidConfig> =>
  Effect.map(notNegative(option, input), Duration.toMillis)

type Step = (now: number) => Effect.Effect<[number, Duration.Duration]>

const periodic = <P extends Period>(period: Effect.Effect<P, InvalidConfig>, steps: (period: P) => Step): Periodic =>
  Object.assign(
    Schedule.fromStep<unknown, number, never, InvalidConfig, never, never>(Effect.map(period, steps)),
    { [TypeId]: period }
  )

export const isPeriodic = (schedule: object): schedule is Periodic => TypeId in schedule

interface FixedOptions {
  readonly initialDelay?: Duration.Input | undefined
}

const fixed = (_tag: "Rate" | "Delay", option: string, input: Duration.Input, options: FixedOptions = {}) =>
  Effect.map(
    Effect.all([positive(option, input), delay("initialDelay", options.initialDelay ?? 0)]),
    ([every, initialDelay]) => ({ _tag, every: Duration.toMillis(every), initialDelay })
  )

export const fixedRate = (period: Duration.Input, options?: FixedOptions): Periodic =>
  periodic(fixed("Rate", "period", period, options), ({ every, initialDelay }) => {
    let due: number | undefined
    let count = 0
    return (now) =>
      Effect.sync(() => {
        due = due === undefined ? now + initialDelay : due + every
        // Behind: once for all that were missed. A clock that was set back does not stretch the period
        if (due < now) due += Math.floor((now - due) / every) * every
        else if (count > 0) due = Math.min(due, now + every)
        return [count++, Duration.millis(Math.max(0, due - now))]
      })
  })

export const fixedDelay = (delay: Duration.Input, options?: FixedOptions): Periodic =>
  periodic(fixed("Delay", "delay", delay, options), ({ every, initialDelay }) => {
    let count = 0
    return () => Effect.sync(() => [count++, Duration.millis(count === 1 ? initialDelay : every)])
  })

/** Only a zone makes an instant of a cron expression, the same on all nodes. */
const inZone = (cron: Cron.Cron): Cron.Cron =>
  Option.isSome(cron.tz)
    ? cron
    : Object.assign(Object.create(Object.getPrototypeOf(cron)), cron, {
      tz: Option.some(DateTime.zoneMakeNamedUnsafe("UTC"))
    })

interface CronOptions {
  readonly timeZone?: string | DateTime.TimeZone | undefined
  readonly onDstOverlap?: Cron.DstOverlapPolicy | undefined
}

const checkCron = Effect.fnUntraced(function*(expression: string | Cron.Cron, options: CronOptions) {
  if (Cron.isCron(expression) && (options.timeZone ?? options.onDstOverlap) !== undefined) {
    return yield* refuse("cron", "a Cron has options of its own: give the time zone to Cron.parse or Cron.make")
  }
  if (typeof options.timeZone === "string" && Option.isNone(DateTime.zoneFromString(options.timeZone))) {
    const shown = JSON.stringify(options.timeZone)
    return yield* refuse("timeZone", `${shown} is no time zone: give an IANA name, such as "Europe/Vienna"`)
  }
  const parsed = Cron.isCron(expression)
    ? Result.succeed(expression)
    : Cron.parse(expression, options.timeZone, { onDstOverlap: options.onDstOverlap })
  if (Result.isFailure(parsed)) {
    return yield* refuse("cron", `${JSON.stringify(expression)}: ${parsed.failure.message}`)
  }
  const cron = inZone(parsed.success)
  yield* Effect.try({
    try: () => Cron.next(cron, 0),
    catch: () => new InvalidConfig({ option: "cron", problem: `${JSON.stringify(expression)} never comes` })
  })
  return { _tag: "Cron", cron } as const
})

export const cron = (expression: string | Cron.Cron, options: CronOptions = {}): Periodic =>
  periodic(checkCron(expression, options), ({ cron }) => {
    let last = -Infinity
    return (now) =>
      Effect.sync(() => {
        // A timer may fire early, and clocks are set: what has run is not scheduled again
        last = Cron.next(cron, last > now && last - now < believed ? last : now).getTime()
        return [last, Duration.millis(last - now)]
      })
  })
