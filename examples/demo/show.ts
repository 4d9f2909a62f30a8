/** Runs the demo, prints its report, and sets the exit code: 0 only if every claim holds. */
import { Config, Effect, Option, Schema } from "effect"
// Deep imports: loading all of @effect/platform-node would double the start-up time
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as redisServer from "../shared/redisServer.ts"
import { print } from "../shared/terminal.ts"
import { direct } from "./director.ts"
import * as memoryFleet from "./memoryFleet.ts"
import * as plan from "./plan.ts"
import * as processFleet from "./processFleet.ts"
import * as report from "./report.ts"
import { timeline } from "./timeline.ts"
import * as view from "./view.ts"

class Failed extends Schema.TaggedError<Failed>()("Failed", {}) {}

const lease =
  `If a leader dies, the others wait until its lease ends: ${plan.options.ttl} (ttl) plus ${plan.options.transition} ` +
  "(transition) after its last renewal."

const startFleet = Effect.gen(function*() {
  const forced = yield* Config.option(Config.Literals(["memory"], "SIMBA_DEMO"))
  if (Option.isSome(forced)) {
    yield* print([
      `Starting ${plan.workers.length} fibers in one process, on the in-process store (SIMBA_DEMO=memory).`,
      `The crash of ${plan.crash.worker} is simulated: its store stops replying, so nobody renews or releases its lease.`,
      lease,
      ""
    ])
    return yield* memoryFleet.make
  }
  const redis = yield* redisServer.find
  yield* print([
    `Starting ${plan.workers.length} processes, on ${redis.name}.`,
    `${plan.crash.worker} will be killed (SIGKILL) while it leads, and ${plan.interruption.worker} interrupted (SIGTERM) while it waits.`,
    lease,
    ""
  ])
  return yield* processFleet.make(redis.url)
})

const show = Effect.gen(function*() {
  const fleet = yield* startFleet
  const history = yield* Effect.scoped(Effect.flatMap(view.make, (onEvent) => direct(fleet, onEvent)))
  const checks = report.checks(history)
  yield* print([
    "",
    ...timeline(history),
    "",
    ...report.summary(history),
    "",
    ...checks.map(([claim, holds]) => `${holds ? "ok    " : "FAILED"}  ${claim}`),
    ""
  ])
  if (checks.some(([, holds]) => !holds)) return yield* new Failed()
}).pipe(
  Effect.scoped,
  Effect.catchIf(
    (error) => error._tag !== "Failed",
    (error) => Effect.andThen(print(["", error.message]), new Failed())
  )
)

// The errors are already printed, so this sets only the exit code
NodeRuntime.runMain(Effect.provide(show, NodeServices.layer), { disableErrorReporting: true })
