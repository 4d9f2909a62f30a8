/**
 * The effect-simba contestant. Uses the library like an application: `Mutex.acquire` in a scope, `Mutex.withLock`, one
 * Redis layer per process.
 */
import { Mutex } from "@effect-simba/core"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { Context, Effect, Exit, Layer, Metric, Scope, Tracer } from "effect"
import { contend } from "../lib/contention.ts"
import {
  type Connect,
  type Contestant,
  namesFor,
  type PairsRequest,
  type Session,
  type Stance
} from "../lib/contestant.ts"

/** Splits the requested lease into `ttl` and `transition`, in roughly the default proportion. */
const periods = ({ leaseMillis, localTurn }: Connect) => {
  const transition = Math.max(Math.round(leaseMillis * 0.375), Math.min(600, leaseMillis - 100))
  return {
    ttl: leaseMillis - transition,
    transition,
    commandTimeout: Math.min(1000, Math.round(transition / 2)),
    ...(localTurn === undefined ? {} : { localTurn })
  }
}

const once = (name: string, variant: string) =>
  variant === "withLock" ? Mutex.withLock(name)(Effect.void) : Effect.scoped(Mutex.acquire(name))

/** Keeps the latest spans, like an exporter that has not sent them yet. */
const tracer = () => {
  let spans: Array<Tracer.Span> = []
  return Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      if (spans.push(span) === 1000) spans = []
      return span
    }
  })
}

const observed = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.andThen(
    Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 second"), Metric.snapshot))),
    Effect.withTracer(work, tracer())
  ))

const pairs = (request: PairsRequest) => request.variant === "traced" ? observed(pairsOf(request)) : pairsOf(request)

const pairsOf = Effect.fnUntraced(function*({ inFlight, millis, oneName, variant }: PairsRequest) {
  const end = performance.now() + millis
  let pairs = 0
  yield* Effect.forEach(
    namesFor(inFlight, oneName),
    (names) => {
      let i = 0
      return Effect.whileLoop({
        while: () => performance.now() < end,
        body: () => once(names[i++ % names.length]!, variant),
        step: () => {
          pairs++
        }
      })
    },
    { concurrency: "unbounded", discard: true }
  )
  return { pairs, failures: 0 }
})

/** Holds each lease in its own scope, as if each protected separate work. */
const hold = Effect.fnUntraced(function*(names: ReadonlyArray<string>) {
  const kept: Array<readonly [Scope.Closeable, unknown]> = []
  yield* Effect.addFinalizer(() =>
    Effect.forEach(kept, ([scope]) => Scope.close(scope, Exit.void), { concurrency: 64, discard: true })
  )
  yield* Effect.forEach(names, (name) => {
    const scope = Scope.makeUnsafe()
    return Effect.map(Scope.provide(Mutex.acquire(name), scope), (lease) => void kept.push([scope, lease]))
  }, { concurrency: 64, discard: true })
})

const stand = (names: ReadonlyArray<string>, as: Stance) =>
  Effect.forEach(
    names,
    (name) =>
      as === "contender"
        ? Effect.asVoid(Mutex.contend(name))
        : Effect.asVoid(Effect.forkScoped(Mutex.acquire(name))),
    { discard: true }
  )

const redis = ({ isCluster, url }: Connect) => {
  const { hostname: host, port } = new URL(url)
  return isCluster
    ? IoRedis.layerCluster({ nodes: [{ host, port: Number(port) }], serverChecks: false })
    : IoRedis.layer({ url, serverChecks: false })
}

const connect = Effect.fnUntraced(function*(request: Connect) {
  const store = yield* Layer.build(
    RedisMutex.layerStore.pipe(Layer.provide(redis(request)))
  )
  const open = Effect.map(
    Layer.build(Layer.fresh(Mutex.layer(periods(request)).pipe(Layer.provide(Layer.succeedContext(store))))),
    (context) => Context.get(context, Mutex.Mutex)
  )
  const scope = yield* Effect.scope
  const services = [yield* open]
  const session: Session = {
    pairs: (request) => Effect.provideService(pairs(request), Mutex.Mutex, services[0]!),
    contend: Effect.fnUntraced(function*(request, onGrant) {
      while (services.length < request.places) services.push(yield* Scope.provide(open, scope))
      const serviceOf = (contender: number) => services[Math.floor(contender / request.mutexes) % request.places]!
      return yield* contend((name, contender) => serviceOf(contender).acquire(name), request, onGrant)
    }),
    stand: (names, as) => Effect.provideService(stand(names, as), Mutex.Mutex, services[0]!),
    hold: (names) => Effect.provideService(hold(names), Mutex.Mutex, services[0]!)
  }
  return session
})

export const contestant: Contestant = { connect }
