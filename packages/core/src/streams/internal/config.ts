/** Validates the options for `StreamClient.layer` and fills in the defaults. The rest of the client relies on this. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { excerpt } from "../../internal/excerpt.ts"
import * as names from "../../internal/nameRules.ts"
import { checkOptions, margin, notNegative, positive, refuse } from "../../internal/optionChecks.ts"
import { processName } from "../../internal/processIdentity.ts"
import { InvalidConfig } from "../../SimbaError.ts"
import type * as StreamStore from "../StreamStore.ts"

/** The options before validation, documented in `StreamClient.Options`. */
type Input =
  & { readonly service: string; readonly processName?: string | undefined }
  & { readonly [Option in "capacity" | "maxFailures"]?: number | undefined }
  & { readonly [Option in "rebalance" | "enableEvents"]?: boolean | undefined }
  & {
    readonly [
      Option in
        | "leaseDuration"
        | "heartbeatInterval"
        | "commandTimeout"
        | "sweepInterval"
        | "gracePeriod"
        | "releaseTimeout"
        | "deadLetterAfter"
        | "confirmTimeout"
        | "progressTimeout"
        | "reapAfter"
        | "checkpointRetention"
    ]?: Duration.Input | undefined
  }

const positiveInt = (option: string, value: number) =>
  Number.isSafeInteger(value) && value >= 1
    ? Effect.succeed(value)
    : refuse(option, `it must be a positive integer, not ${excerpt(value)}`)

const boolean = (option: string, value: boolean) =>
  typeof value === "boolean" ? Effect.succeed(value) : refuse(option, "it must be true or false")

const named = <A>(option: string, name: Effect.Effect<A, { readonly problem: string }>) =>
  Effect.mapError(name, ({ problem }) => new InvalidConfig({ option, problem }))

const checkService = names.checked<StreamStore.ServiceName>("service", names.anyProblem)

/** Derives the consumer's name in the consumer group from the process name. */
const checkConsumer = (id: string) =>
  Effect.flatMap(
    names.checked<string>("process", names.anyProblem)(id),
    (id) => names.checked<StreamStore.ConsumerName>("process", names.consumerProblem)(`${names.consumerPrefix}${id}`)
  )

export type StreamConfig = Effect.Success<ReturnType<typeof check>>

export const check = Effect.fnUntraced(function*(options: Input) {
  yield* checkOptions(options)
  const lease = yield* positive("leaseDuration", options.leaseDuration ?? "2 seconds")
  const heartbeat = yield* positive("heartbeatInterval", options.heartbeatInterval ?? "1 second")
  const commandTimeout = yield* positive("commandTimeout", options.commandTimeout ?? "500 millis")
  const needed = Duration.sum(Duration.sum(heartbeat, commandTimeout), margin(lease))
  if (Duration.isGreaterThanOrEqualTo(needed, lease)) {
    return yield* refuse(
      "leaseDuration",
      `${Duration.format(lease)} leaves no time to renew: it must exceed heartbeatInterval ` +
        `(${Duration.format(heartbeat)}) plus commandTimeout (${Duration.format(commandTimeout)}) plus the safety ` +
        `margin (${Duration.format(margin(lease))})`
    )
  }
  const confirm = yield* positive("confirmTimeout", options.confirmTimeout ?? "1500 millis")
  if (Duration.isLessThanOrEqualTo(confirm, commandTimeout)) {
    return yield* refuse("confirmTimeout", `it must exceed commandTimeout (${Duration.format(commandTimeout)})`)
  }
  const deadLetterAfter = yield* notNegative("deadLetterAfter", options.deadLetterAfter ?? "1 hour")
  const checkpointRetention = yield* positive("checkpointRetention", options.checkpointRetention ?? "7 days")
  if (Duration.isLessThan(checkpointRetention, Duration.days(7))) {
    return yield* refuse(
      "checkpointRetention",
      "it must be at least 7 days, because each claim keeps the checkpoint for 7 days"
    )
  }
  return {
    service: yield* named("service", checkService(options.service)),
    consumer: yield* named("processName", checkConsumer(options.processName ?? processName())),
    capacity: yield* positiveInt("capacity", options.capacity ?? 64),
    leaseDuration: lease,
    heartbeatInterval: heartbeat,
    commandTimeout,
    sweepInterval: yield* positive("sweepInterval", options.sweepInterval ?? "2 seconds"),
    gracePeriod: yield* notNegative("gracePeriod", options.gracePeriod ?? "5 seconds"),
    releaseTimeout: yield* positive("releaseTimeout", options.releaseTimeout ?? "2 seconds"),
    maxFailures: yield* positiveInt("maxFailures", options.maxFailures ?? 10),
    deadLetterAfter,
    // A streak of failures ends after this time without a failure. At least an hour: a short deadLetterAfter could end
    // the streak between two attempts
    streakEndsAfter: Duration.max(deadLetterAfter, Duration.hours(1)),
    rebalance: yield* boolean("rebalance", options.rebalance ?? true),
    confirmTimeout: confirm,
    progressTimeout: options.progressTimeout === undefined
      ? undefined
      : yield* positive("progressTimeout", options.progressTimeout),
    enableEvents: yield* boolean("enableEvents", options.enableEvents ?? false),
    reapAfter: yield* positive("reapAfter", options.reapAfter ?? "10 minutes"),
    checkpointRetention
  }
})
