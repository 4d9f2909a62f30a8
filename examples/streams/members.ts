/** The two kinds of processes: one announces data streams and writes them, the other runs a handler for each it owns. */
import { StreamClient, StreamLease, StreamMessages } from "@effect-simba/core/streams"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreamStore } from "@effect-simba/redis/streams"
import { Effect, Layer, Schema, Stdio, Stream } from "effect"
import { Redis } from "effect/persistence/Redis"
import { report } from "./events.ts"
import * as plan from "./plan.ts"

export interface Place {
  readonly url: string
  readonly service: string
}

const client = (place: Place, consumer: string) =>
  StreamClient.layer({ ...plan.options, service: place.service, consumer }).pipe(
    Layer.provide(RedisStreamStore.layer),
    Layer.provideMerge(IoRedis.layer({ url: place.url }))
  )

/** A message: the number in the field `n`; the last one of a stream says so. */
const Step = Schema.Struct({ n: Schema.FiniteFromString, last: Schema.optionalKey(Schema.Literal("yes")) })

const write = Effect.fnUntraced(function*(stream: string) {
  const redis = yield* Redis
  for (let n = 1; n <= plan.messages; n++) {
    yield* redis.send("XADD", stream, "*", "n", String(n), ...n === plan.messages ? ["last", "yes"] : [])
    yield* Effect.sleep(plan.pace)
  }
  // Nobody wants them after the show
  yield* redis.send("EXPIRE", stream, "600")
})

export const produce = (who: string, place: Place) =>
  Effect.gen(function*() {
    const streams = Array.from({ length: plan.streams }, (_, index) => `${place.service}:${who}-${index + 1}`)
    for (
      const { stream } of yield* StreamClient.announceAll(streams.map((stream) => ({ stream, info: { by: who } })))
    ) {
      yield* report({ _tag: "Announced", who, stream })
    }
    yield* Effect.forEach(streams, write, { concurrency: "unbounded", discard: true })
  }).pipe(Effect.provide(client(place, who)))

const handler = (who: string) =>
  Effect.gen(function*() {
    const { stream, token } = yield* StreamLease.StreamLease
    yield* report({ _tag: "Taken", who, stream, token })
    yield* StreamMessages.process(Step, ({ value }) =>
      Effect.andThen(Effect.sleep(plan.work), report({ _tag: "Processed", who, stream, n: value.n, token })), {
      until: ({ value }) =>
        value.last === "yes"
    }).pipe(Effect.tapErrorTag("StreamYielded", () =>
      report({ _tag: "GivenBack", who, stream })))
    yield* report({ _tag: "Done", who, stream })
  })

/** Until it is told to end, or whoever started it is gone: then its standard input ends. */
export const consume = (who: string, place: Place) =>
  Effect.gen(function*() {
    const stdio = yield* Stdio.Stdio
    process.stdout.on("error", () => undefined)
    yield* report({ _tag: "Joins", who })
    yield* Effect.raceFirst(StreamClient.run(handler(who)), Effect.ignore(Stream.runDrain(stdio.stdin)))
  }).pipe(Effect.provide(client(place, who)))
