/**
 * Spans only where somebody listens. A span costs more than an uncontended lock does without one.
 *
 * Somebody listens if tracing is enabled and a tracer was provided (as every exporter's layer does). The native tracer,
 * which Effect falls back to, keeps its spans in memory and shows them to nobody. A fiber keeps both facts at hand, so
 * asking costs two property reads.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Tracer from "effect/Tracer"

export const isTracing = (fiber: Fiber.Fiber<unknown, unknown>): boolean => {
  const { tracer, tracerEnabled } = fiber.cache
  return tracer !== undefined && tracerEnabled && tracer !== Tracer.nativeTracer
}

/** What tells one lease from all others. */
export const attributes = (subject: { readonly mutex: string; readonly id?: string; readonly token?: number }) => ({
  "simba.mutex": subject.mutex,
  ...(subject.id === undefined ? {} : { "simba.contender": subject.id }),
  ...(subject.token === undefined ? {} : { "simba.token": subject.token })
})

type Options = () => { readonly attributes: Record<string, unknown>; readonly root?: boolean }

/** For an effect that `fiber` is about to run. */
export const spanOn = <A, E, R>(
  fiber: Fiber.Fiber<unknown, unknown>,
  name: string,
  options: Options,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => isTracing(fiber) ? Effect.withSpan(self, name, options()) as Effect.Effect<A, E, R> : self

export const span = <A, E, R>(
  name: string,
  options: Options,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => Effect.withFiber<A, E, R>((fiber) => spanOn(fiber, name, options, self))
