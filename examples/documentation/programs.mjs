// Runs an effect from the documentation on the in-memory Redis, in virtual time.
import { RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { FakeRedis, TestMutex } from "@effect-simba/testkit"
import { TestStreams } from "@effect-simba/testkit/streams"
import { Cause, Effect, Exit, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"

/** The services that programs in the documentation may need. */
const worldOf = (module) => {
  const clients = Layer.mergeAll(
    TestMutex.layerClient(RedisMutex.layerStore, { name: "mutexes" }),
    TestStreams.layerClient(RedisStreams.layerStore, { service: "orders", name: "streams" })
  )
  const contender = module.__Contender === undefined ? Layer.empty : module.__Contender.layer("jobs")
  return contender.pipe(Layer.provideMerge(clients), Layer.provideMerge(FakeRedis.layer()))
}

const step = "5 seconds"
const steps = 400

/** Runs a program until it ends, or interrupts it after half an hour of virtual time. */
export const runProgram = (program, module, onLine) => {
  const logger = Logger.make(({ message }) => onLine([message].flat().map(String).join(" ")))
  const played = Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.scoped(program))
    for (let i = 0; i < steps && fiber.pollUnsafe() === undefined; i++) yield* TestClock.adjust(step)
    const exit = fiber.pollUnsafe()
    if (exit === undefined) return yield* Fiber.interrupt(fiber)
    if (Exit.isFailure(exit)) return yield* Effect.die(new Error(Cause.pretty(exit.cause)))
  })
  return Effect.runPromise(played.pipe(
    Effect.provide(worldOf(module)),
    Effect.provide(Logger.layer([logger])),
    Effect.provide(TestClock.layer())
  ))
}
