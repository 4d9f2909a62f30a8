/**
 * The process for one producer or consumer: `node member.ts producer|consumer <who> <service>`. Uses the Redis at
 * `REDIS_URL`. A producer announces data streams and writes their messages. A consumer runs a handler for each stream
 * that it owns.
 */
import { StreamClient, StreamLease, StreamMessages } from "@effect-simba/core/streams"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit, Layer, Option, References, Schema, Stdio } from "effect"
import { Redis } from "effect/persistence/Redis"
import { now } from "../shared/clock.ts"
import { reporter, untilParentDies } from "../shared/process.ts"
import { Event } from "./events.ts"
import * as plan from "./plan.ts"

const report = reporter(Event)

/** A message: its number, and a mark on the last message in a stream. */
const Step = Schema.Struct({ n: Schema.FiniteFromString, last: Schema.optionalKey(Schema.Literal("yes")) })

const write = Effect.fnUntraced(function*(stream: string) {
  const redis = yield* Redis
  for (let n = 1; n <= plan.messages; n++) {
    yield* redis.send("XADD", stream, "*", "n", String(n), ...n === plan.messages ? ["last", "yes"] : [])
    yield* Effect.sleep(plan.pace)
  }
  // Nobody needs the stream after the demo
  yield* redis.send("EXPIRE", stream, "600")
})

const produce = Effect.fnUntraced(function*(who: string, service: string) {
  const streams = Array.from({ length: plan.streams }, (_, index) => `${service}:${who}-${index + 1}`)
  const announced = yield* StreamClient.announceAll(streams.map((stream) => ({ stream, info: { by: who } })))
  for (const { stream } of announced) report({ _tag: "Announced", who, at: yield* now, stream })
  yield* Effect.forEach(streams, write, { concurrency: "unbounded", discard: true })
})

const ending = (exit: Exit.Exit<void, StreamMessages.MessagesError>) => {
  if (Exit.isSuccess(exit)) return "Done"
  return Option.exists(Exit.findErrorOption(exit), ({ _tag }) => _tag === "StreamYielded") ? "Yielded" : "Stopped"
}

const handler = (who: string) =>
  Effect.gen(function*() {
    const { ensure, stream, token } = yield* StreamLease.StreamLease
    // Fails if the lease expired while this process was stalled: another consumer may own the stream by now
    const nowAsOwner = Effect.tap(now, () => ensure)
    report({ _tag: "Taken", who, at: yield* nowAsOwner, stream, token })
    const processStep = Effect.fnUntraced(function*(n: number) {
      yield* Effect.sleep(plan.work)
      report({ _tag: "Processed", who, at: yield* nowAsOwner, stream, token, n })
    })
    yield* StreamMessages.process(Step, ({ value }) => processStep(value.n), {
      until: ({ value }) => value.last === "yes"
    }).pipe(
      Effect.onExit((exit) => Effect.map(now, (at) => report({ _tag: ending(exit), who, at, stream, token })))
    )
  })

const consume = Effect.fnUntraced(function*(who: string) {
  report({ _tag: "Joins", who, at: yield* now })
  return yield* StreamClient.run(handler(who))
})

const main = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const [role, who, service] = yield* stdio.args
  const client = RedisStreams.layerRedis({ ...plan.options, service: service!, processName: who }).pipe(
    Layer.provideMerge(IoRedis.layerFromEnv({ commandTimeout: plan.commandTimeout }))
  )
  const work: Effect.Effect<void, unknown, StreamClient.StreamClient | Redis> = role === "producer"
    ? produce(who!, service!)
    : consume(who!)
  yield* untilParentDies(Effect.provide(work, client))
})

NodeRuntime.runMain(main.pipe(
  Effect.provideService(References.MinimumLogLevel, "Warn"),
  Effect.provide(NodeServices.layer)
))
