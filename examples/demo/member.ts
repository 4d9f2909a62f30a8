/** The process for one worker: `node member.ts <worker>`. Uses the Redis at `REDIS_URL`. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Stdio } from "effect"
import { reporter, untilParentDies } from "../shared/process.ts"
import { Event } from "./events.ts"
import { mutexes } from "./processFleet.ts"
import { run } from "./worker.ts"

const main = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const [worker] = yield* stdio.args
  yield* untilParentDies(run(worker!, mutexes(worker!), reporter(Event)))
})

// The failure is already reported as an event
NodeRuntime.runMain(Effect.provide(main, NodeServices.layer), { disableErrorReporting: true })
