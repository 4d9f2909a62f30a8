/** Validates options for mutexes, contenders, jobs and the stream client where they enter the library. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { InvalidConfig } from "../SimbaError.ts"
import { excerpt } from "./excerpt.ts"

export const refuse = (option: string, problem: string): Effect.Effect<never, InvalidConfig> =>
  Effect.fail(new InvalidConfig({ option, problem }))

/**
 * The safety margin: how long before the end of the server's lease an owner stops. The owner then stops before another
 * can start, even if its clock's rate and the server's differ by up to 5%.
 */
export const marginMillis = (leaseMillis: number): number => Math.max(100, leaseMillis * 0.05)

export const margin = (lease: Duration.Duration): Duration.Duration =>
  Duration.millis(marginMillis(Duration.toMillis(lease)))

/** Callers without a type checker may pass anything. */
export const checkOptions = (options: unknown): Effect.Effect<void, InvalidConfig> =>
  typeof options === "object" && options !== null
    ? Effect.void
    : refuse("options", `${excerpt(options)} is not an object`)

/** Like `Duration.fromInput`, but returns `None` instead of zero for `NaN` and for objects with a `NaN` field. */
export const durationOf = (input: Duration.Input): Option.Option<Duration.Duration> => {
  const numbers: ReadonlyArray<unknown> = typeof input === "object" && input !== null ? Object.values(input) : [input]
  return numbers.some(Number.isNaN) ? Option.none() : Duration.fromInput(input)
}

export const notDuration = (option: string, input: unknown): Effect.Effect<never, InvalidConfig> =>
  refuse(option, `${excerpt(input)} is not a duration: write milliseconds, or a text such as "10 seconds"`)

/** Redis scripts write sums of two durations. From 1e14 on, Lua writes numbers with an exponent. */
const longestMillis = 31_536e9

const finite = (option: string, input: Duration.Input, least: number, tooLow: string) => {
  const duration = durationOf(input)
  if (duration._tag === "None") return notDuration(option, input)
  const millis = Duration.toMillis(duration.value)
  if (millis > longestMillis) return refuse(option, "it must be at most 365000 days")
  return millis < least ? refuse(option, tooLow) : Effect.succeed(Duration.millis(Math.ceil(millis)))
}

/** Returns a duration from one millisecond to a thousand years, rounded up to whole milliseconds. */
export const positive = (option: string, input: Duration.Input): Effect.Effect<Duration.Duration, InvalidConfig> =>
  finite(option, input, 1, "it must be at least 1 millisecond")

/** Like `positive`, but allows zero. */
export const notNegative = (option: string, input: Duration.Input): Effect.Effect<Duration.Duration, InvalidConfig> =>
  finite(option, input, 0, "it must not be negative")

export const oneOf = (
  option: string,
  input: string,
  values: ReadonlyArray<string>
): Effect.Effect<void, InvalidConfig> =>
  values.includes(input) ? Effect.void : refuse(option, `${excerpt(input)} is none of ${values.join(", ")}`)

/** Checks that the ttl and the transition leave time to renew. */
export const checkPeriods = Effect.fnUntraced(function*(options: {
  readonly ttl: Duration.Input
  readonly transition: Duration.Input
  readonly commandTimeout: Duration.Duration
  /** Whether a liveness probe, which may take up to `commandTimeout`, runs before each renewal. */
  readonly probed?: boolean
}) {
  const ttl = yield* positive("ttl", options.ttl)
  const transition = yield* notNegative("transition", options.transition)
  const timeouts = options.probed === true ? 2 : 1
  const lease = Duration.sum(ttl, transition)
  const lost = margin(lease)
  const least = Duration.sum(lost, Duration.times(options.commandTimeout, timeouts))
  if (Duration.isLessThanOrEqualTo(transition, least)) {
    const enough = Duration.millis((Math.floor(Duration.toMillis(least) / 100) + 1) * 100)
    const cure = Duration.isLessThan(enough, lease)
      ? `; for a lease of the same length, use a ttl of ${Duration.format(Duration.subtract(lease, enough))} and a ` +
        `transition of ${Duration.format(enough)}`
      : ""
    return yield* refuse(
      "transition",
      `${Duration.format(transition)} leaves no time to renew: it must exceed the safety margin ` +
        `(${Duration.format(lost)}) plus ${timeouts === 2 ? "twice " : ""}commandTimeout ` +
        `(${Duration.format(options.commandTimeout)})${cure}`
    )
  }
  return { ttl, transition }
})
