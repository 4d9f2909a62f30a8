/**
 * Producers and consumers of data streams, as processes on one Redis. One consumer is killed, one leaves in order, one
 * joins; the others go on where each stopped.
 *
 *     npm run demo:streams
 *
 * It needs a Redis: that of `REDIS_URL`, or a `redis-server` on the PATH, of which it starts one for itself.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Config, Effect, Option, Schema, Stdio } from "effect"
import * as redisServer from "../demo/redisServer.ts"
import { print } from "../demo/view.ts"
import { direct } from "./director.ts"
import { consume, type Place, produce } from "./members.ts"
import { checks, summary } from "./report.ts"

class Failed extends Schema.TaggedError<Failed>()("Failed", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

const findRedis = Effect.gen(function*() {
  const url = yield* Config.option(Config.String("REDIS_URL"))
  if (Option.isSome(url)) return url.value
  if (Option.isNone(yield* redisServer.installed)) {
    return yield* new Failed({ problem: "It needs a Redis: set REDIS_URL, or put a redis-server on the PATH." })
  }
  return (yield* redisServer.start).url
})

const show = Effect.gen(function*() {
  const url = yield* findRedis
  const history = yield* direct({ url, service: `streams-${process.pid}` })
  const results = checks(history)
  yield* print([
    "",
    ...summary(history),
    "",
    ...results.map(([claim, holds]) => `${holds ? "ok    " : "FAILED"}  ${claim}`)
  ])
  if (results.some(([, holds]) => !holds)) return yield* new Failed({ problem: "Not all of it came true." })
}).pipe(
  Effect.scoped,
  Effect.tapError((error) => print(["", error.message]))
)

const main = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const [role, who, url, service] = yield* stdio.args
  if (role === undefined || who === undefined || url === undefined || service === undefined) return yield* show
  const place: Place = { url, service }
  return yield* role === "producer" ? produce(who, place) : consume(who, place)
})

// What went wrong has been said by then; it is the exit code that counts
NodeRuntime.runMain(Effect.provide(main, NodeServices.layer), { disableErrorReporting: true })
