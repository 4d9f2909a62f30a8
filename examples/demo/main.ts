/**
 * Five workers contend for leadership. With `REDIS_URL`, or a `redis-server` on the PATH, they are processes that share
 * a real Redis; otherwise, or with `SIMBA_DEMO=memory`, they are fibers that share the in-process store.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Config, Effect, Option, Schema, Stdio } from "effect"
import { direct } from "./director.ts"
import * as memoryFleet from "./memoryFleet.ts"
import * as plan from "./plan.ts"
import * as processFleet from "./processFleet.ts"
import * as redisServer from "./redisServer.ts"
import * as report from "./report.ts"
import { timeline } from "./timeline.ts"
import * as view from "./view.ts"

class Failed extends Schema.TaggedError<Failed>()("Failed", {}) {}

const inProcess = (why: string) =>
  Effect.as(
    view.print([
      `In one process, on the in-process store (${why}).`,
      `The crash of ${plan.crash.worker} is simulated: its store stops answering, so nobody renews or releases its lease.`
    ]),
    memoryFleet.make
  )

const inProcesses = (where: string, url: string) =>
  Effect.as(
    view.print([
      `In ${plan.workers.length} processes, on ${where}.`,
      `The crash of ${plan.crash.worker} is a SIGKILL, the interruption of ${plan.interruption.worker} a SIGTERM.`
    ]),
    processFleet.make(url)
  )

const chooseFleet = Effect.gen(function*() {
  const forced = yield* Config.option(Config.Literals(["memory"], "SIMBA_DEMO"))
  if (Option.isSome(forced)) return yield* inProcess("SIMBA_DEMO=memory")
  const url = yield* Config.option(Config.String("REDIS_URL"))
  if (Option.isSome(url)) return yield* inProcesses("the Redis of REDIS_URL", url.value)
  const version = yield* redisServer.installed
  if (Option.isNone(version)) return yield* inProcess("no REDIS_URL, and no redis-server on the PATH")
  const server = yield* redisServer.start
  return yield* inProcesses(`a Redis ${version.value} of its own at 127.0.0.1:${server.port}`, server.url)
})

const demo = Effect.gen(function*() {
  yield* view.print(["", `Five workers want to lead "${plan.mutex}", ${plan.terms} times each.`])
  const fleet = yield* yield* chooseFleet
  yield* view.print([""])
  const history = yield* Effect.scoped(Effect.flatMap(view.make, (onEvent) => direct(fleet, onEvent)))
  yield* view.print(["", ...timeline(history), "", ...report.summary(history), ""])
  const checks = report.checks(history)
  yield* view.print([...checks.map(([claim, holds]) => `${holds ? "ok    " : "FAILED"}  ${claim}`), ""])
  if (checks.some(([, holds]) => !holds)) return yield* new Failed()
}).pipe(
  Effect.scoped,
  Effect.catchIf(
    (error) => error._tag !== "Failed",
    (error) => Effect.andThen(view.print(["", error.message]), new Failed())
  )
)

const main = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const [role, worker] = yield* stdio.args
  yield* role === "worker" && worker !== undefined ? processFleet.member(worker) : demo
})

// What went wrong has been said by then; it is the exit code that counts
NodeRuntime.runMain(Effect.provide(main, NodeServices.layer), { disableErrorReporting: true })
