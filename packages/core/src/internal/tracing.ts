/**
 * Creates spans only if they are exported: a span costs more than an uncontended lock.
 *
 * Spans are exported if tracing is enabled and a tracer was provided; every exporter's layer provides a tracer.
 * Effect's native tracer, the fallback, only keeps spans in memory. A fiber caches both facts, so the check costs two
 * property reads.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import * as log from "./log.ts"

export const isTracing = (fiber: Fiber.Fiber<unknown, unknown>): boolean => {
  const { tracer, tracerEnabled } = fiber.cache
  return tracer !== undefined && tracerEnabled && tracer !== Tracer.nativeTracer
}

/** The attributes that identify a lease. */
export const attributes = (subject: { readonly mutex: string; readonly id?: string; readonly token?: number }) => ({
  "simba.mutex": subject.mutex,
  ...(subject.id === undefined ? {} : { "simba.lease": subject.id }),
  ...(subject.token === undefined ? {} : { "simba.token": subject.token })
})

type Options = () => { readonly attributes: Record<string, unknown>; readonly root?: boolean }

const failed = (cause: Cause.Cause<unknown>) => log.debug("The tracer failed; the work continues without it", cause)

/**
 * Runs the effect in a span. If the tracer throws, the effect runs without a span, because tracing must not affect
 * leases.
 */
const withSpan = <A, E, R>(self: Effect.Effect<A, E, R>, name: string, options: Options): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) => {
    const scope = Scope.makeUnsafe()
    const making = Effect.exit(Scope.provide(Effect.makeSpanScoped(name, options()), scope))
    return Effect.flatMap(making, (made) =>
      Exit.isFailure(made)
        ? Effect.andThen(failed(made.cause), restore(self))
        : Effect.onExit(
          restore(Effect.withParentSpan(self, made.value) as Effect.Effect<A, E, R>),
          (exit) => Effect.catchCause(Scope.close(scope, exit), failed)
        ))
  })

/** Runs an effect in a span, if spans are exported. `fiber` is the fiber that will run the effect. */
export const spanOn = <A, E, R>(
  fiber: Fiber.Fiber<unknown, unknown>,
  name: string,
  options: Options,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => isTracing(fiber) ? withSpan(self, name, options) : self

/** Adds the lease's attributes to the current span. */
export const annotate = (lease: Parameters<typeof attributes>[0]): Effect.Effect<void> =>
  Effect.catchCause(Effect.annotateCurrentSpan(attributes(lease)), failed)

export const span = <A, E, R>(
  name: string,
  options: Options,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => Effect.withFiber<A, E, R>((fiber) => spanOn(fiber, name, options, self))
