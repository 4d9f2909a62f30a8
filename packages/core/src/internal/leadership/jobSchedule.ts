/**
 * Job schedules, and their text form in the backend. Every node in a fleet computes the same times, in milliseconds
 * since 1970. `Leadership` exports `every` and `cron`. `jobRunner` and `Jobs` parse the texts.
 */
import * as Cron from "effect/Cron"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { InvalidConfig } from "../../SimbaError.ts"
import { excerpt } from "../excerpt.ts"
import { positive, refuse } from "../optionChecks.ts"
import * as cronInstants from "./cronInstants.ts"

export interface Instants {
  /** `every <milliseconds>`, or `cron <zone> <expression>`. */
  readonly text: string
  readonly next: cronInstants.Next
  /** The period of `every`. The backend starts a new job with the current period. Also the default of `catchUp`. */
  readonly everyMillis: number | undefined
}

/** Returns the time in milliseconds between the first two scheduled times after `at`. */
export const periodAt = (next: cronInstants.Next, at: number): number => {
  const first = next(at)
  return next(first) - first
}

export const TypeId = "~@effect-simba/core/Leadership/JobSchedule" as const

export interface JobSchedule {
  readonly [TypeId]: Effect.Effect<Instants, InvalidConfig>
}

/** The scheduled times are the multiples of the period since 1970. */
const periodic = (everyMillis: number): Instants => ({
  text: `every ${everyMillis}`,
  next: (after) => (Math.floor(after / everyMillis) + 1) * everyMillis,
  everyMillis
})

export const every = (period: Duration.Input): JobSchedule => ({
  [TypeId]: Effect.map(positive("period", period), (period) => periodic(Duration.toMillis(period)))
})

const nicknames = new Map(Object.entries({
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *"
}))

/** Unsupported syntax from other cron implementations, with alternatives. */
const dialect: ReadonlyArray<readonly [RegExp, string]> = [
  [/^\?$/, "? is not supported: write *"],
  [/^(L|L-\d+|LW)$/i, "L is not supported: take the first day of the next month, or days 28-31 and let the run decide"],
  [/^(\d|[a-z]{3})L$/i, "L is not supported: name the weekday, and let the run decide whether it is the last"],
  [/^\d+W$/i, "W is not supported: name weekdays, such as 1-5"],
  [/#/, "# is not supported: name the weekday, and let the run decide which of the month it is"]
]

const refusal = (shown: unknown, problem: string) => refuse("cron", `${excerpt(shown)}: ${problem}`)

const compile = Effect.fnUntraced(function*(shown: string, timeZone: string | DateTime.TimeZone) {
  if (typeof shown !== "string") return yield* refusal(shown, "it is not a string")
  const text = shown.trim().replace(/\s+/g, " ")
  if (text === "@reboot") return yield* refusal(shown, "a fleet has no reboot: use Leadership.whileLeader")
  const expression = nicknames.get(text.toLowerCase()) ?? text
  for (const field of expression.split(/[ ,]/)) {
    const known = dialect.find(([pattern]) => pattern.test(field))
    if (known !== undefined) return yield* refusal(shown, known[1])
  }
  const zone = DateTime.isTimeZone(timeZone) ? Option.some(timeZone) : DateTime.zoneFromString(timeZone)
  if (Option.isNone(zone)) {
    return yield* refuse(
      "timeZone",
      `${excerpt(timeZone)} is not a time zone: use an IANA name, such as "Europe/Vienna"`
    )
  }
  const parsed = Cron.parse(expression, zone.value)
  if (Result.isFailure(parsed)) return yield* refusal(shown, parsed.failure.message)
  // The hour is the fourth field from the end, with or without a seconds field
  const next = cronInstants.make(parsed.success, zone.value, expression.split(" ").at(-4)!.startsWith("*"))
  // The search throws if the expression never matches
  if (Result.isFailure(Result.try(() => next(0)))) return yield* refusal(shown, "it never occurs")
  return {
    text: `cron ${DateTime.zoneToString(zone.value)} ${expression}`,
    next,
    everyMillis: undefined
  } satisfies Instants
})

export const cron = (
  expression: string,
  options: { readonly timeZone?: string | DateTime.TimeZone | undefined } = {}
): JobSchedule => ({
  // A JavaScript program may pass the zone itself, or misspell the option: the job would follow UTC
  [TypeId]: "timeZone" in Object(options) || Object.keys(options).length === 0
    ? compile(expression, options.timeZone ?? "UTC")
    : refuse("timeZone", `write { timeZone: "Europe/Vienna" }`)
})

/** Parses the text form that the backend stores. */
export const parse = (text: string): Effect.Effect<Instants, InvalidConfig> => {
  const [kind, zone = "", ...expression] = text.split(" ")
  if (kind === "every") return every(Number(zone))[TypeId]
  if (kind === "cron") return cron(expression.join(" "), { timeZone: zone })[TypeId]
  return refuse("schedule", `${JSON.stringify(text)} is neither "every <ms>" nor "cron <zone> <expression>"`)
}
