/**
 * The process for one contestant. It executes the suite's requests. Contestants run in separate processes, so they do
 * not share a heap, optimized code or library versions.
 */
import { Cause, Effect, Exit, Scope } from "effect"
import { monitorEventLoopDelay } from "node:perf_hooks"
import {
  type Asked,
  type Call,
  type Calls,
  grantedId,
  type HoldRequest,
  type MeterRequest,
  type Replied,
  type Spent
} from "./calls.ts"
import type { Contending, Contestant, Session } from "./contestant.ts"
import { close } from "./locks.ts"
import * as Profiler from "./profiler.ts"

const resolution = 1
const delays = monitorEventLoopDelay({ resolution })

const meter = ({ stalls }: MeterRequest) => {
  delays.reset()
  if (stalls) delays.enable()
  const cpu = process.cpuUsage()
  const startedAt = performance.now()
  return (): Spent => {
    const { system, user } = process.cpuUsage(cpu)
    const millis = performance.now() - startedAt
    if (stalls) delays.disable()
    return {
      millis,
      cpuMillis: (system + user) / 1000,
      stallMillis: stalls ? Math.max(0, delays.max / 1e6 - resolution) : 0
    }
  }
}

/**
 * Formats a failure with its cause, because the error from `Effect.tryPromise` only says that the promise was rejected.
 */
const reasonOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  const beneath = error instanceof Error && error.cause !== undefined ? `: ${String(error.cause)}` : ""
  return `${error instanceof Error ? error.message : String(error)}${beneath}`
}

const collectGarbage = Effect.gen(function*() {
  const collect = globalThis.gc
  if (collect === undefined) return yield* Effect.die(new Error("started without --expose-gc"))
  for (let i = 0; i < 4; i++) {
    collect()
    yield* Effect.sleep("20 millis")
  }
  return process.memoryUsage().heapUsed
})

const serve = Effect.fnUntraced(function*(contestant: Contestant) {
  let session: Session | undefined
  let contending: Contending | undefined
  let read = meter({ stalls: false })
  let readProfile: (() => Promise<Profiler.Profiled>) | undefined
  const scopes: Record<"session" | "contending" | "holding", Scope.Closeable | undefined> = {
    session: undefined,
    contending: undefined,
    holding: undefined
  }
  const end = (which: keyof typeof scopes) =>
    Effect.suspend(() => {
      const scope = scopes[which]
      scopes[which] = undefined
      return scope === undefined ? Effect.void : close(scope)
    })
  const begin = <A, E>(which: keyof typeof scopes, effect: Effect.Effect<A, E, Scope.Scope>) =>
    Effect.andThen(
      end(which),
      Effect.suspend(() => {
        const scope = Scope.makeUnsafe()
        scopes[which] = scope
        return Scope.provide(effect, scope)
      })
    )
  const current = Effect.suspend(() =>
    session === undefined ? Effect.die(new Error("not connected")) : Effect.succeed(session)
  )
  const disconnect = Effect.forEach(["contending", "holding", "session"] as const, end, { discard: true })
  const onGrant = () => void process.send?.({ id: grantedId, reply: undefined } satisfies Replied)
  const ignored = () => undefined
  const hold = ({ count, prefix }: HoldRequest) => {
    const names = Array.from({ length: count }, (_, i) => `${prefix}-${i}`)
    return { names, begin: Effect.flatMap(current, (session) => begin("holding", session.hold(names))) }
  }

  const calls: { readonly [K in Call]: (request: Calls[K][0]) => Effect.Effect<Calls[K][1], unknown> } = {
    connect: (request) =>
      Effect.andThen(
        disconnect,
        Effect.map(begin("session", contestant.connect(request)), (opened) => void (session = opened))
      ),
    disconnect: () => disconnect,
    pairs: (request) =>
      Effect.flatMap(current, (session) =>
        Effect.suspend(() => {
          const read = meter({ stalls: false })
          return Effect.map(session.pairs(request), (pairs) => ({ ...pairs, ...read() }))
        })),
    contend: (request) =>
      Effect.flatMap(
        current,
        (session) =>
          Effect.map(
            begin("contending", session.contend(request, request.announces ? onGrant : ignored)),
            (begun) => void (contending = begun)
          )
      ),
    grantedElsewhere: () => Effect.sync(() => contending?.grantedElsewhere()),
    first: () => Effect.suspend(() => contending!.first),
    taken: () => Effect.suspend(() => contending!.taken),
    stopContending: () => end("contending"),
    hold: (request) => Effect.suspend(() => hold(request).begin),
    stand: (request) =>
      Effect.flatMap(current, (session) => begin("contending", session.stand!(hold(request).names, request.as))),
    letGo: () => end("holding"),
    collectGarbage: () => Effect.asVoid(collectGarbage),
    heap: (request) =>
      Effect.gen(function*() {
        // Warm up with one acquire and release, so that tables have grown and code is compiled
        yield* hold(request).begin
        yield* end("holding")
        yield* Effect.sleep("500 millis")
        const { begin } = hold(request)
        const before = yield* collectGarbage
        yield* begin
        const after = yield* collectGarbage
        yield* end("holding")
        return { bytes: after - before }
      }),
    startMeter: (request) => Effect.sync(() => void (read = meter(request))),
    readMeter: () => Effect.sync(() => read()),
    startProfile: () => Effect.promise(async () => void (readProfile = await Profiler.start())),
    readProfile: () => Effect.promise(() => readProfile!())
  }
  const run = Effect.runForkWith(yield* Effect.context<never>())
  process.on("message", ({ call, id, request }: Asked) => {
    const reply = (replied: Replied) => process.send?.(replied)
    run(Effect.suspend(() => calls[call](request as never))).addObserver((exit) =>
      reply(Exit.isSuccess(exit) ? { id, reply: exit.value } : { id, error: reasonOf(exit.cause) })
    )
  })
})

process.on("disconnect", () => process.exit(0))
// Some peers cause an unhandled rejection if they lose a lock or if a retry is not awaited
process.on("unhandledRejection", (reason) => process.stderr.write(`${String(reason)}\n`))
const { contestant } = await import(process.argv[2]!) as { readonly contestant: Contestant }
await Effect.runPromise(serve(contestant))
process.send?.({ id: 0, reply: undefined } satisfies Replied)
