/** Scenarios that must hold on each runtime, with any store. */
import { Mutex } from "@effect-simba/core"
import { StreamClient, StreamMessages } from "@effect-simba/core/streams"
import { Context, Deferred, Duration, Effect, Fiber, Layer, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"

const check = (holds, what) => holds ? Effect.void : Effect.die(new Error(`failed: ${what}`))

/** Stands for one process, with its own mutex layer. */
const processOn = (store, processName, options) =>
  Effect.map(
    Layer.build(Layer.fresh(Mutex.layer({ processName, ...options }).pipe(Layer.provide(store)))),
    (context) => Context.get(context, Mutex.Mutex)
  )

/** A release in one process wakes a waiter in another process long before the 16-second lease would end. */
export const mutexes = (storeOf) =>
  Effect.scoped(Effect.gen(function*() {
    const a = yield* processOn(storeOf("a"), "a")
    const b = yield* processOn(storeOf("b"), "b")
    const entered = yield* Deferred.make()
    const first = yield* Effect.forkChild(
      a.withLock("m")((lease) =>
        Deferred.succeed(entered, undefined).pipe(Effect.andThen(Effect.sleep("300 millis")), Effect.as(lease.token))
      )
    )
    yield* Deferred.await(entered)
    const [waited, second] = yield* Effect.timed(b.withLock("m")((lease) => Effect.succeed(lease.token)))
    yield* check(second > (yield* Fiber.join(first)), "tokens grow")
    yield* check(Duration.toMillis(waited) < 5000, "a release wakes the waiter")
    yield* check((yield* a.owner("m"))._tag === "Free", "the mutex is free in the end")
  }))

/**
 * All connections break while one process owns the mutex and another process waits. The two-second lease is still
 * renewed, and the release still wakes the waiter.
 */
export const outage = (storeOf) =>
  Effect.scoped(Effect.gen(function*() {
    const store = storeOf("a")
    const redis = Context.get(yield* Layer.build(store), Redis)
    const periods = { ttl: "500 millis", transition: "1500 millis" }
    const a = yield* processOn(store, "a", periods)
    const b = yield* processOn(storeOf("b"), "b", periods)
    const waiter = yield* a.withLock("o")((lease) =>
      Effect.gen(function*() {
        const waiter = yield* Effect.forkScoped(Effect.timed(b.withLock("o")(Effect.void)))
        yield* Effect.sleep("300 millis")
        yield* Effect.ignore(redis.send("CLIENT", "KILL", "TYPE", "pubsub"))
        // The command also closes the connection that sends it
        yield* Effect.ignore(redis.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"))
        yield* Effect.sleep("3 seconds")
        yield* check(yield* lease.isHeld, "a lease is renewed after an outage")
        return waiter
      })
    )
    const [waited] = yield* Fiber.join(waiter)
    yield* check(Duration.toMillis(waited) < 4500, "a release wakes the waiter after an outage")
  }))

const Order = Schema.Struct({ amount: Schema.FiniteFromString })

/** A consumer owns a data stream and receives its message. */
export const streams = (storeOf) =>
  Effect.scoped(Effect.gen(function*() {
    const handled = yield* Deferred.make()
    const store = storeOf("a")
    const redis = Context.get(yield* Layer.build(store), Redis)
    const client = StreamClient.layer({ service: "runtimes" }).pipe(Layer.provide(store))
    const consume = StreamMessages.process(Order, ({ value }) => Deferred.succeed(handled, value.amount))
    yield* redis.send("XADD", "orders:eu", "*", "amount", "42")
    yield* Effect.forkScoped(Effect.provide(StreamClient.run(consume), client))
    yield* Effect.provide(StreamClient.announce("orders:eu"), client)
    const amount = yield* Effect.timeout(Deferred.await(handled), "10 seconds")
    yield* check(amount === 42, "the handler receives the message")
  }))
