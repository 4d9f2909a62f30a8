/** Consumers for one service on a shared in-memory backend. */
import { StreamClient, type StreamLease } from "@effect-simba/core/streams"
import { Clock, Context, Effect, Exit, Fiber, Layer, Logger, References, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Backend, connect } from "./streamBackend.ts"

/** Announcements for data streams `s1`, `s2` and so on. */
export const names = (count: number) => Array.from({ length: count }, (_, i) => ({ stream: `s${i + 1}` }))

/**
 * Creates a fleet. `lines` contains the log lines of all its consumers, and `annotations` the annotations of each line.
 */
export const make = Effect.gen(function*() {
  const scope = yield* Effect.scope
  const backend = new Backend(yield* Clock.Clock)
  const lines: Array<string> = []
  const annotations: Array<Readonly<Record<string, unknown>>> = []
  const logger = Logger.make<unknown, void>(({ fiber, logLevel, message }) => {
    lines.push(`${logLevel}: ${[message].flat().map(String).join(" ")}`)
    annotations.push(fiber.getRef(References.CurrentLogAnnotations))
  })

  /**
   * Opens a consumer in a separate scope. `close` closes that scope. `kill` makes the connection hang, then closes the
   * scope in the background.
   */
  const open = Effect.fnUntraced(function*(
    processName: string,
    options: Omit<StreamClient.Options, "service" | "processName"> = {}
  ) {
    const { layer, link } = connect(backend)
    const own = yield* Scope.fork(scope)
    const live = StreamClient.layer({ service: "svc", processName, rebalance: false, ...options }).pipe(
      Layer.provide(layer),
      Layer.provideMerge(Logger.layer([logger]))
    )
    const context = yield* Layer.buildWithScope(live, own)
    const client = Context.get(context, StreamClient.StreamClient)
    const leaseOf = (stream: string) =>
      Effect.flatMap(client.owned, (all) => {
        const lease = all.find((lease) => lease.stream === stream)
        return lease === undefined ? Effect.fail({ _tag: "NotOwned" as const }) : Effect.succeed(lease)
      })
    const start = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.forkIn(Effect.provideContext(effect, context), own, { startImmediately: true })
    return {
      client,
      link,
      start,
      /** Claims a data stream in the fleet's scope. */
      acquire: (stream: string) => Scope.provide(client.acquireIfAvailable(stream), scope),
      done: (stream: string) => Effect.flatMap(leaseOf(stream), ({ done }) => done),
      release: (stream: string) => Effect.flatMap(leaseOf(stream), ({ release }) => release),
      /** Runs a handler and announces `count` data streams. */
      serve: <A, E>(count: number, handler: StreamClient.Handler<A, E, StreamLease.StreamLease> = Effect.never) =>
        Effect.tap(start(client.run(handler)), client.announceAll(names(count))),
      close: Scope.close(own, Exit.void),
      kill: Effect.suspend(() => {
        link.mode = "hang"
        return Effect.asVoid(Effect.forkDetach(Scope.close(own, Exit.void)))
      })
    }
  })
  return {
    backend,
    open,
    lines: lines as ReadonlyArray<string>,
    annotations: annotations as ReadonlyArray<Readonly<Record<string, unknown>>>
  }
})

/** A fleet with a single consumer, `a`. */
export const ofOne = Effect.gen(function*() {
  const fleet = yield* make
  return { ...fleet, a: yield* fleet.open("a") }
})

/**
 * Closes everything at the end, however long that takes in virtual time. Every test thereby checks that closing ends.
 */
export const test = <A, E>(body: Effect.Effect<A, E, Scope.Scope>) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    yield* Scope.provide(body, scope)
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
    while (closing.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
    yield* Fiber.join(closing)
  })

export type Fleet = Effect.Success<typeof make>

export type Lease = StreamLease.StreamLease

export type Consumer = Effect.Success<ReturnType<Fleet["open"]>>
