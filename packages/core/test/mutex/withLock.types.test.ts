/** Programs without type annotations, as users write them: the compiler infers errors and requirements. */
import { Contender, Leadership, type Lease, Mutex, type SimbaError } from "@effect-simba/core"
import type * as MutexStore from "@effect-simba/core/MutexStore"
import { StreamClient, type StreamLease, StreamMessages } from "@effect-simba/core/streams"
import { describe, expectTypeOf, it } from "@effect/vitest"
import { Config, Context, Data, Effect, Layer, type Option, Schedule, Schema, type Scope, Stream } from "effect"

class Db extends Context.Service<Db, { readonly query: Effect.Effect<number, "sql"> }>()("test/Db") {}
class Broken extends Data.TaggedError("Broken")<{ readonly part: string }> {}
class Jobs extends Contender.Service<Jobs>()("test/Jobs") {}

const live = Mutex.layerMemory()

type Locked = SimbaError.AcquireError | SimbaError.LeaseLost
type Tried = SimbaError.RequestError | SimbaError.LeaseLost

/** Compiled, but never run. */
const types = (title: string, check: () => void) => it(title, () => void check)

describe("the compiler infers for withLock", () => {
  types("success, errors and requirements of an effect", () => {
    const program = Effect.succeed(1).pipe(Mutex.withLock("m"))
    expectTypeOf(program).toEqualTypeOf<Effect.Effect<number, Locked, Mutex.Mutex>>()
  })

  types("success, errors and requirements of a function that takes the lease", () => {
    const program = Mutex.withLock("m")((lease) => Effect.succeed(lease))
    expectTypeOf(program).toEqualTypeOf<Effect.Effect<Lease.Lease, Locked, Mutex.Mutex>>()
  })

  types("success, errors and requirements of a generator", () => {
    const program = Mutex.withLock("m", { timeout: "1 second" })((lease) =>
      Effect.gen(function*() {
        const { query } = yield* Db
        yield* lease.ensure
        return yield* query
      })
    )
    expectTypeOf(program).toEqualTypeOf<Effect.Effect<number, Locked | "sql", Db | Mutex.Mutex>>()
  })

  types("the body's error class in addition to withLock's errors", () => {
    const program = Effect.fail(new Broken({ part: "x" })).pipe(Mutex.withLock("m"))
    expectTypeOf<Effect.Error<typeof program>>().toEqualTypeOf<Locked | Broken>()
  })

  types("no requirements once the layer is provided", () => {
    const program = Effect.void.pipe(Mutex.withLock("m"), Effect.provide(live))
    expectTypeOf<Effect.Services<typeof program>>().toEqualTypeOf<never>()
  })

  types("the remaining errors after one tag is caught", () => {
    const program = Effect.void.pipe(
      Mutex.withLock("m"),
      Effect.catchTag("AcquireTimeout", ({ owner }) => Effect.succeed(owner))
    )
    expectTypeOf<Effect.Error<typeof program>>().toEqualTypeOf<Exclude<Locked, SimbaError.AcquireTimeout>>()
    expectTypeOf<Effect.Success<typeof program>>().toEqualTypeOf<string | void | undefined>()
  })

  types("the fields of each of several caught tags", () => {
    const program = Effect.void.pipe(
      Mutex.withLock("m"),
      Effect.catchTags({
        AcquireTimeout: (error) => Effect.succeed(error.mutex),
        LeaseLost: (error) => Effect.succeed(error.resource),
        InvalidConfig: (error) => Effect.succeed(error.option)
      })
    )
    expectTypeOf<Effect.Success<typeof program>>().toEqualTypeOf<string | void>()
  })

  types("the fields of a caught loss reason", () => {
    const program = Effect.void.pipe(
      Mutex.withLock("m"),
      Effect.catchReason("LeaseLost", "TakenOver", (reason) => Effect.succeed(reason.owner))
    )
    expectTypeOf<Effect.Success<typeof program>>().toEqualTypeOf<string | void | undefined>()
  })

  types("that each error has `isRetryable`", () => {
    const program = Effect.void.pipe(
      Mutex.withLock("m"),
      Effect.retry({ while: (error) => error.isRetryable, times: 3 })
    )
    expectTypeOf<Effect.Error<typeof program>>().toEqualTypeOf<Locked>()
  })

  types("the same errors after retries on a schedule", () => {
    const program = Effect.void.pipe(Mutex.withLock("m"), Effect.retry(Schedule.recurs(2)))
    expectTypeOf<Effect.Error<typeof program>>().toEqualTypeOf<Locked>()
  })

  types("the same types for the service's method", () => {
    const program = Mutex.Mutex.use((mutex) => mutex.withLock("m")(Effect.succeed("done")))
    expectTypeOf(program).toEqualTypeOf<Effect.Effect<string, Locked, Mutex.Mutex>>()
  })

  types("no additional errors for a lock inside another lock", () => {
    const program = Effect.succeed(1).pipe(Mutex.withLock("a"), Mutex.withLock("b"))
    expectTypeOf(program).toEqualTypeOf<Effect.Effect<number, Locked, Mutex.Mutex>>()
  })

  types("the arguments and the effect of an application function", () => {
    const close = Effect.fn("close")(
      function*(month: string) {
        const { query } = yield* Db
        return `${month}: ${yield* query}`
      },
      (effect, month) => effect.pipe(Mutex.withLock(`close:${month}`))
    )
    expectTypeOf(close).parameters.toEqualTypeOf<[month: string]>()
    expectTypeOf(close("2026-11")).toEqualTypeOf<Effect.Effect<string, Locked | "sql", Db | Mutex.Mutex>>()
  })

  types("a stream that locks a mutex for each element", () => {
    const saved = Stream.make("a", "b").pipe(
      Stream.mapEffect((row) => Effect.succeed(row.length).pipe(Mutex.withLock(`row:${row}`)), { concurrency: 4 })
    )
    expectTypeOf(saved).toEqualTypeOf<Stream.Stream<number, Locked, Mutex.Mutex>>()
  })

  types("the types of several locks that are acquired concurrently", () => {
    const all = Effect.forEach(["a", "b"], (name) => Effect.succeed(1).pipe(Mutex.withLock(name)), { concurrency: 2 })
    expectTypeOf(all).toEqualTypeOf<Effect.Effect<Array<number>, Locked, Mutex.Mutex>>()
  })

  types("the types of a lock whose name comes from the configuration", () => {
    const program = Effect.flatMap(Config.String("REPORT_MUTEX"), (name) => Effect.void.pipe(Mutex.withLock(name)))
    expectTypeOf(program).toEqualTypeOf<Effect.Effect<void, Locked | Config.ConfigError, Mutex.Mutex>>()
  })

  types("a layer that runs locked work in the background", () => {
    const Refresh = Layer.effectDiscard(
      Effect.void.pipe(
        Mutex.withLock("refresh", { timeout: "1 second" }),
        Effect.ignore({ log: true }),
        Effect.repeat(Schedule.spaced("1 minute")),
        Effect.forkScoped
      )
    ).pipe(Layer.provide(live))
    expectTypeOf(Refresh).toEqualTypeOf<Layer.Layer<never, SimbaError.InvalidConfig | SimbaError.BackendError>>()
  })

  types("only the possible errors of a mutex with a fixed name", () => {
    const Invoices = Mutex.named("invoices", { ttl: "5 seconds" })
    const program = Invoices.withLock(Effect.fail(new Broken({ part: "x" })))
    expectTypeOf<Effect.Error<typeof program>>().toEqualTypeOf<
      SimbaError.StoreError | SimbaError.AlreadyHeld | SimbaError.InvalidConfig | SimbaError.LeaseLost | Broken
    >()
  })

  types("the services that a hook requires", () => {
    const isAlive = Effect.map(Db, ({ query }) => query !== undefined)
    const program = Effect.succeed(1).pipe(Mutex.withLock("m", { isAlive }))
    expectTypeOf(program).toEqualTypeOf<Effect.Effect<number, Locked, Db | Mutex.Mutex>>()
  })

  types("a service whose layer requires the mutex", () => {
    const layer = Layer.effect(Db, Effect.map(Mutex.Mutex, () => ({ query: Effect.succeed(1) })))
    expectTypeOf(layer).toEqualTypeOf<Layer.Layer<Db, never, Mutex.Mutex>>()
  })
})

describe("the compiler infers for related operations", () => {
  types("an `Option` as the result of withLockIfAvailable", () => {
    const program = Effect.succeed(1).pipe(Mutex.withLockIfAvailable("m"))
    expectTypeOf(program).toEqualTypeOf<Effect.Effect<Option.Option<number>, Tried, Mutex.Mutex>>()
  })

  types("that acquire requires a scope", () => {
    expectTypeOf(Mutex.acquire("m")).toEqualTypeOf<
      Effect.Effect<Lease.Lease, SimbaError.AcquireError, Mutex.Mutex | Scope.Scope>
    >()
    expectTypeOf(Mutex.acquireIfAvailable("m")).toEqualTypeOf<
      Effect.Effect<Option.Option<Lease.Lease>, SimbaError.RequestError, Mutex.Mutex | Scope.Scope>
    >()
  })

  types("no requirements for acquire once a scope and the layer are provided", () => {
    const program = Effect.scoped(Effect.flatMap(Mutex.acquire("m"), ({ ensure }) => ensure)).pipe(Effect.provide(live))
    expectTypeOf<Effect.Services<typeof program>>().toEqualTypeOf<never>()
    expectTypeOf<Effect.Success<typeof program>>().toEqualTypeOf<void>()
  })

  types("the errors from work under several mutexes", () => {
    const program = Effect.flatMap(Mutex.acquireAll(["a", "b"]), (group) => group.protect(Effect.succeed(group.tokens)))
    expectTypeOf<Effect.Error<typeof program>>().toEqualTypeOf<Locked>()
  })

  types("that whileLeader never succeeds, and fails only with `onError: 'fail'`", () => {
    const quiet = Jobs.use((jobs) => jobs.whileLeader(Effect.fail("x" as const)))
    expectTypeOf(quiet).toEqualTypeOf<Effect.Effect<never, never, Jobs>>()
    const loud = Jobs.use((jobs) => jobs.whileLeader(Effect.fail("x" as const), { onError: "fail" }))
    expectTypeOf(loud).toEqualTypeOf<Effect.Effect<never, "x", Jobs>>()
  })

  types("the services of operations inside Effect.all", () => {
    const all = Effect.all([
      Mutex.acquire("a"),
      Mutex.acquireIfAvailable("a"),
      Mutex.acquireAll(["a"]),
      Mutex.contend("a"),
      Mutex.withLock("a")(Effect.void),
      Mutex.withLockIfAvailable("a")(Effect.void)
    ])
    expectTypeOf<Effect.Services<typeof all>>().toEqualTypeOf<Mutex.Mutex | Scope.Scope>()
    const run = Effect.all([
      StreamClient.run(Effect.void),
      StreamMessages.process(Schema.Struct({}), () => Effect.void)
    ])
    expectTypeOf<Effect.Services<typeof run>>().toEqualTypeOf<StreamClient.StreamClient | StreamLease.StreamLease>()
  })

  types("the services of layers inside Layer.mergeAll", () => {
    const contenders = Layer.mergeAll(Jobs.layer("a"), Leadership.layerJobs("b", []))
    expectTypeOf<Layer.Services<typeof contenders>>().toEqualTypeOf<Mutex.Mutex>()
    const db = Layer.succeed(Db, { query: Effect.succeed(1) })
    const stores = Layer.mergeAll(Mutex.layer(), db)
    expectTypeOf<Layer.Services<typeof stores>>().toEqualTypeOf<MutexStore.MutexStore>()
    const alone = Layer.mergeAll(Mutex.layerMemory(), db)
    expectTypeOf<Layer.Services<typeof alone>>().toEqualTypeOf<never>()
  })

  types("a tagged union for mutex events", () => {
    const successors = Mutex.events("m", { pollInterval: "1 second" }).pipe(
      Stream.filter((event) => event._tag === "HandedOver"),
      Stream.map(({ successor }) => successor)
    )
    expectTypeOf<Stream.Success<typeof successors>>().toEqualTypeOf<string>()
  })
})

describe("the compiler reports an unknown option or a value of the wrong type on the line where it occurs", () => {
  types("for every operation and for the layer", () =>
    void [
      // @ts-expect-error -- 'tiemout' does not exist in type 'AcquireOptions'
      Mutex.withLock("m", { tiemout: "1 second" }),
      // @ts-expect-error -- 'timeout' does not exist in type 'LeaseOptions'
      Mutex.withLockIfAvailable("m", { timeout: "1 second" }),
      // @ts-expect-error -- timeout: "1 secnod" is not a duration
      Mutex.acquire("m", { timeout: "1 secnod" }),
      // @ts-expect-error -- ttl: a boolean is not a duration
      Mutex.acquireAll(["a"], { ttl: true }),
      // @ts-expect-error -- 'tiemout' does not exist in the options of a named mutex
      Mutex.named("m", { ttl: "1 second", tiemout: "1 second" }),
      // @ts-expect-error -- isAlive: a string is not an effect
      Mutex.withLock("m", { isAlive: Effect.succeed("yes") }),
      // @ts-expect-error -- 'waiters' does not exist: it is 'limit'
      Mutex.inspect("m", { waiters: 1 }),
      // @ts-expect-error -- 'contender' does not exist: it is 'processName'
      Mutex.layer({ contender: "a" }),
      // @ts-expect-error -- guard: a duration is not a schedule
      Mutex.layer({ guard: "5 seconds" })
    ])
})
