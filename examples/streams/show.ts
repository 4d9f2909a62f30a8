/** Runs the demo, prints its report, and sets the exit code: 0 only if every claim holds. */
import { Effect, Schema } from "effect"
// Deep imports: loading all of @effect/platform-node would double the start-up time
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as redisServer from "../shared/redisServer.ts"
import { print } from "../shared/terminal.ts"
import { direct } from "./director.ts"
import { checks, summary } from "./report.ts"

class Failed extends Schema.TaggedError<Failed>()("Failed", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

const show = Effect.gen(function*() {
  const redis = yield* redisServer.find
  yield* print([`All of them use ${redis.name}.`, ""])
  const history = yield* direct(redis.url)
  const results = checks(history)
  yield* print([
    "",
    ...summary(history),
    "",
    ...results.map(([claim, holds]) => `${holds ? "ok    " : "FAILED"}  ${claim}`)
  ])
  if (results.some(([, holds]) => !holds)) return yield* new Failed({ problem: "Not every claim holds." })
}).pipe(
  Effect.scoped,
  Effect.tapError((error) => print(["", error.message]))
)

// The errors are already printed, so this sets only the exit code
NodeRuntime.runMain(Effect.provide(show, NodeServices.layer), { disableErrorReporting: true })
