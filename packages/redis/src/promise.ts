/**
 * Mutexes and leadership for programs without Effect, such as Express, Nest and Fastify.
 *
 * The promises wrap `RedisMutex.layer` in a `ManagedRuntime`, with the same guarantees and errors. The error classes
 * are in `SimbaError` from `@effect-simba/core`, and `error._tag` is the class name. Programs that use Effect
 * should use `Mutex` and `RedisMutex` instead.
 *
 * **Example** (Responding with 409 while another process is working)
 *
 * ```ts
 * import { createSimba } from "@effect-simba/redis/promise"
 *
 * const simba = await createSimba({ url: "redis://localhost:6379" })
 *
 * export const handler = async (month: string) => {
 *   const result = await simba.withLockIfAvailable(`report:${month}`, async (lease, signal) => {
 *     await fetch(`http://reports.example.com/${month}?token=${lease.token}`, { signal })
 *   })
 *   return result.acquired ? 200 : 409
 * }
 *
 * process.once("SIGTERM", () => void simba.close())
 * ```
 *
 * @since 0.1.0
 */
import type { Options as ContenderOptions } from "@effect-simba/core/Contender"
import { cron, runJobs } from "@effect-simba/core/Leadership"
import type * as Core from "@effect-simba/core/Lease"
import * as Mutex from "@effect-simba/core/Mutex"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import { BackendError, InvalidConfig, LeaseLost } from "@effect-simba/core/SimbaError"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { logTo } from "./internal/client/applicationLog.ts"
import * as log from "./internal/client/log.ts"
import { type Names, problemWith } from "./internal/client/optionNames.ts"
import * as IoRedis from "./IoRedis.ts"
import * as RedisMutex from "./RedisMutex.ts"

/**
 * Options for `createSimba`. Durations are numbers of milliseconds or strings such as `"10 seconds"`.
 *
 * @see {@link createSimba}
 * @category options
 * @since 0.1.0
 */
export interface Options extends Omit<Mutex.Options, "onOverrun" | "guard"> {
  /** The server's URL. It starts with `redis://`, or with `rediss://` for TLS. Default: `redis://localhost:6379`. */
  readonly url?: string | undefined
  /** An ioredis client that belongs to the application, which must close it. Replaces `url` and `redis.client`. */
  readonly client?: Parameters<typeof IoRedis.layerClient>[0] | undefined
  /** Further options for the connection: ioredis options and timeouts. */
  readonly redis?: Omit<IoRedis.Options, "url"> | undefined
  /** Receives log lines at all levels. Replaces the console, which receives only `info` and above. */
  readonly log?: ((line: LogLine) => void) | undefined
}

/**
 * A log line for the application's logger.
 *
 * **Example** (Forwarding log lines to Pino)
 *
 * ```ts
 * import { createSimba, type LogLine } from "@effect-simba/redis/promise"
 *
 * interface Logger extends Record<LogLine["level"], (fields: object, message: string) => void> {}
 *
 * export const connect = (pino: Logger) =>
 *   createSimba({ log: ({ error, fields, level, message }) => pino[level]({ ...fields, err: error }, message) })
 * ```
 *
 * @see {@link createSimba}
 * @category models
 * @since 0.1.0
 */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error"
  readonly message: string
  /** Context, such as `mutex` and `token`. */
  readonly fields: Readonly<Record<string, unknown>>
  /** The error that the line reports, if any. */
  readonly error: unknown
}

/**
 * Options for a lock.
 *
 * @see {@link Simba}
 * @category options
 * @since 0.1.0
 */
export interface LockOptions extends Omit<Mutex.AcquireOptions, "isAlive"> {
  /** Stops waiting, or aborts the work, when the signal aborts. The promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Options for `lead`.
 *
 * @see {@link Simba}
 * @category options
 * @since 0.1.0
 */
export interface LeadOptions extends Omit<ContenderOptions, "isAlive"> {
  /** A cron expression for when the work runs. By default, it runs once, when leadership begins. */
  readonly cron?: string | undefined
  /** The IANA time zone of `cron`. Default: UTC. */
  readonly timeZone?: string | undefined
  /**
   * How late a new leader may still make up for a missed `cron` run. By default, missed runs are skipped.
   */
  readonly catchUp?: Duration.Input | undefined
}

/**
 * The lease on a held mutex. Its members use only the local clock, and never send requests.
 *
 * **Example** (Checking the lease before each step)
 *
 * ```ts
 * import type { Lease } from "@effect-simba/redis/promise"
 *
 * export const copy = async (lease: Lease, rows: ReadonlyArray<string>, write: (row: string, token: number) => Promise<void>) => {
 *   for (const row of rows) {
 *     lease.ensure()
 *     await write(row, lease.token)
 *   }
 * }
 * ```
 *
 * @see {@link Simba}
 * @category models
 * @since 0.1.0
 */
export interface Lease {
  readonly mutex: string
  readonly id: string
  /**
   * The fencing token, which grows with every grant. Pass it to the resource that the mutex protects, before you read
   * any data that you will change.
   */
  readonly token: number
  readonly isHeld: boolean
  /** Milliseconds until the lease ends if it is not renewed. */
  readonly timeLeft: number
  /** Throws `LeaseLost` unless the lease is still held. Call it before each step that needs the mutex. */
  readonly ensure: () => void
}

/**
 * A mutex that is held until it is released.
 *
 * **Example** (Holding a mutex until the end of a block)
 *
 * ```ts
 * import type { Simba } from "@effect-simba/redis/promise"
 *
 * export const close = async (simba: Simba, work: (signal: AbortSignal) => Promise<void>) => {
 *   await using lease = await simba.acquire("books", { timeout: "5 seconds" })
 *   await work(lease.signal)
 * }
 * ```
 *
 * @see {@link Simba}
 * @category models
 * @since 0.1.0
 */
export interface HeldLease extends Lease, AsyncDisposable {
  /** Aborts when the lease ends. After a loss, the reason is `LeaseLost`. */
  readonly signal: AbortSignal
  readonly release: () => Promise<void>
}

/**
 * Work that needs a mutex. `signal` aborts when the lease is lost or the `Simba` is closed.
 *
 * **Gotchas**
 *
 * Pass `signal` to everything that waits. Until the promise settles, the mutex stays held and the caller waits. Work
 * that tries to acquire its own mutex again deadlocks until `timeout`.
 *
 * @see {@link Simba}
 * @category models
 * @since 0.1.0
 */
export type Work<A> = (lease: Lease, signal: AbortSignal) => PromiseLike<A>

/**
 * A contender for leadership.
 *
 * **Example** (Letting another process lead before a restart)
 *
 * ```ts
 * import type { Contender } from "@effect-simba/redis/promise"
 *
 * export const drain = (contender: Contender) => contender.isLeader ? contender.stop() : Promise.resolve()
 * ```
 *
 * @see {@link Simba}
 * @category models
 * @since 0.1.0
 */
export interface Contender extends AsyncDisposable {
  readonly isLeader: boolean
  /**
   * Aborts the work, waits for it to end, and lets another process lead. The work may call it, but must not await it,
   * because it would wait for itself.
   */
  readonly stop: () => Promise<void>
}

/**
 * Whether the mutex was acquired and, if it was, the work's result.
 *
 * @see {@link Simba}
 * @category models
 * @since 0.1.0
 */
export type Attempt<A> = { readonly acquired: true; readonly value: A } | { readonly acquired: false }

/**
 * Locks and leadership over one Redis connection.
 *
 * **Example** (A leader-only cron)
 *
 * ```ts
 * import { createSimba } from "@effect-simba/redis/promise"
 *
 * const simba = await createSimba()
 *
 * await simba.lead("nightly", { cron: "0 3 * * *", timeZone: "Europe/Vienna", catchUp: "5 minutes" }, async (lease, signal) => {
 *   await fetch(`http://reports.example.com/nightly?token=${lease.token}`, { method: "POST", signal })
 * })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Simba extends AsyncDisposable {
  /**
   * Waits for the mutex, and runs `work` while holding it. Rejects with `AcquireTimeout` after `timeout`, with
   * `LeaseLost` if the lease is lost, or with any error that `work` throws.
   */
  readonly withLock: {
    <A>(name: string, work: Work<A>): Promise<A>
    <A>(name: string, options: LockOptions, work: Work<A>): Promise<A>
  }
  /** Like `withLock`, but does not wait. If the mutex is held, the work does not run. */
  readonly withLockIfAvailable: {
    <A>(name: string, work: Work<A>): Promise<Attempt<A>>
    <A>(name: string, options: Omit<LockOptions, "timeout">, work: Work<A>): Promise<Attempt<A>>
  }
  /**
   * Waits for the mutex, and holds it until you release it. No work is aborted if the lease is lost, so watch `signal`
   * or call `ensure`.
   */
  readonly acquire: (name: string, options?: LockOptions) => Promise<HeldLease>
  /**
   * Contends for leadership, and runs `work` while this process leads. The work runs once each time leadership begins
   * or, with `cron`, at most once per scheduled time in the whole fleet. If the work fails, the error is logged.
   * Without `cron`, a failure ends the leadership, and another process can try.
   */
  readonly lead: {
    (name: string, work: Work<unknown>): Promise<Contender>
    (name: string, options: LeadOptions, work: Work<unknown>): Promise<Contender>
  }
  /**
   * Aborts all work, waits for it to end, releases all mutexes, and closes the connections. Work must not await it,
   * because it would wait for itself.
   */
  readonly close: () => Promise<void>
}

const view = (lease: Core.Lease): Lease => ({
  mutex: lease.mutex,
  id: lease.id,
  token: lease.token,
  get isHeld() {
    return Effect.runSync(lease.isHeld)
  },
  get timeLeft() {
    return Duration.toMillis(Effect.runSync(lease.timeLeft))
  },
  ensure: () => Effect.runSync(lease.ensure)
})

/** Aborts the signal. If the lease was lost, the reason is the `LeaseLost` error. */
const abort = (controller: AbortController, lease: Core.Lease): Effect.Effect<void> =>
  Effect.map(Effect.result(lease.ensure), (held) => controller.abort(Result.isFailure(held) ? held.failure : undefined))

/**
 * Returns whether work rejected because it was aborted. It may reject with the abort reason, with an `AbortError`, or
 * with `LeaseLost`.
 */
const isAbort = (error: unknown, { reason }: AbortSignal, lease: Core.Lease): boolean =>
  error === reason || (error instanceof Error && error.name === "AbortError") ||
  (error instanceof LeaseLost && error.id === lease.id)

/**
 * Runs the work. An interruption aborts it and waits for it to end, because the mutex must not be released earlier. The
 * caller's promise rejects with the reason for the abort.
 */
const bodyOf = <A>(work: Work<A>) => (lease: Core.Lease): Effect.Effect<A, unknown> =>
  Effect.callback((resume) => {
    const controller = new AbortController()
    const running = Promise.resolve().then(() => {
      // Other work may have aborted this work in the same task
      controller.signal.throwIfAborted()
      return work(view(lease), controller.signal)
    })
    const settled = running.then(Effect.succeed, Effect.fail)
    settled.then(resume)
    const { id, mutex, token } = lease
    return abort(controller, lease).pipe(
      Effect.andThen(Effect.promise(() => settled)),
      Effect.flatten,
      Effect.catch((error) =>
        isAbort(error, controller.signal, lease)
          ? Effect.void
          : log.error("Work failed after it was aborted", Cause.fail(error))
      ),
      Effect.annotateLogs({ mutex, lease: id, token })
    )
  })

const ofTry: Names<Omit<LockOptions, "timeout">> = {
  ttl: true,
  transition: true,
  maxHold: true,
  localTurn: true,
  signal: true
}
const ofLock: Names<LockOptions> = { ...ofTry, timeout: true }
const ofLead: Names<LeadOptions> = {
  ttl: true,
  transition: true,
  maxHold: true,
  localTurn: true,
  pollInterval: true,
  drainTimeout: true,
  logLevel: true,
  cron: true,
  timeZone: true,
  catchUp: true
}
const ofSimba: Names<Options> = {
  url: true,
  client: true,
  redis: true,
  log: true,
  ttl: true,
  transition: true,
  confirmTimeout: true,
  commandTimeout: true,
  releaseTimeout: true,
  processName: true,
  metricsByMutex: true,
  localTurn: true
}

const ofRedis: Names<NonNullable<Options["redis"]>> = {
  client: true,
  commandTimeout: true,
  connectTimeout: true,
  pool: true,
  serverChecks: true
}

const problemOf = <O extends object>(options: O | undefined, names: Names<O>): InvalidConfig | undefined => {
  const signal = (options as { readonly signal?: Partial<AbortSignal> | null } | undefined)?.signal ?? undefined
  const isSignal = signal === undefined || typeof signal.addEventListener === "function"
  return problemWith(options, names) ??
    (isSignal ? undefined : new InvalidConfig({ option: "signal", problem: "it must be an AbortSignal" }))
}

interface Unchecked<O, A> {
  readonly options: O | undefined
  readonly work: Work<A>
  readonly problem: InvalidConfig | undefined
}

/** Validates the arguments, because JavaScript callers may pass any value. */
const unchecked = <O extends object, A>(
  args: readonly [Work<A>] | readonly [O, Work<A>],
  names: Names<O>
): Unchecked<O, A> => {
  const [options, work] = args.length === 1 ? [undefined, args[0]] : args
  const problem = typeof work === "function"
    ? problemOf(options, names)
    : new InvalidConfig({ option: "work", problem: "it must be a function, as the last argument" })
  return { options, work, problem }
}

const make = (runtime: ManagedRuntime.ManagedRuntime<Mutex.Mutex, unknown>): Simba => {
  let isClosed = false
  const closed = () =>
    new BackendError({
      operation: "simba",
      isRetryable: false,
      cause: new Error("this Simba was closed: call close() only when no work is left")
    })

  const run = <A>(effect: Effect.Effect<A, unknown, Mutex.Mutex>, signal?: AbortSignal): Promise<A> =>
    isClosed
      ? Promise.reject(closed())
      : runtime.runPromiseExit(effect, { signal }).then((exit) => {
        if (Exit.isSuccess(exit)) return exit.value
        if (!Cause.hasInterruptsOnly(exit.cause)) throw Cause.squash(exit.cause)
        throw signal?.aborted === true ? signal.reason : closed()
      })

  /** Opens a resource in a separate fiber. The fiber holds it until `release` is called or this `Simba` is closed. */
  const hold = <A>(resource: Effect.Effect<A, unknown, Mutex.Mutex | Scope.Scope>, signal?: AbortSignal) =>
    run(
      Effect.suspend(() => {
        const opened = Deferred.makeUnsafe<A, unknown>()
        const closing = Deferred.makeUnsafe<void>()
        const fiber = runtime.runFork(
          resource.pipe(
            Effect.onExit((exit) => Deferred.done(opened, exit)),
            Effect.andThen(Deferred.await(closing)),
            Effect.scoped
          )
        )
        const release = Effect.andThen(Deferred.succeed(closing, undefined), Fiber.await(fiber))
        return Deferred.await(opened).pipe(
          Effect.onInterrupt(() => Fiber.interrupt(fiber)),
          Effect.map((value) => ({ value, release: () => Effect.runPromise(Effect.asVoid(release)) }))
        )
      }),
      signal
    )

  const close = () => {
    isClosed = true
    return runtime.dispose()
  }

  return {
    withLock: <A>(name: string, ...args: readonly [Work<A>] | readonly [LockOptions, Work<A>]) => {
      const { options, problem, work } = unchecked(args, ofLock)
      if (problem !== undefined) return Promise.reject(problem)
      return run(Mutex.withLock(name, options)(bodyOf(work)), options?.signal)
    },
    withLockIfAvailable: <A>(name: string, ...args: readonly [Work<A>] | readonly [LockOptions, Work<A>]) => {
      const { options, problem, work } = unchecked<Omit<LockOptions, "timeout">, A>(args, ofTry)
      if (problem !== undefined) return Promise.reject(problem)
      return run(
        Effect.map(
          Mutex.withLockIfAvailable(name, options)(bodyOf(work)),
          (value): Attempt<A> => Option.isSome(value) ? { acquired: true, value: value.value } : { acquired: false }
        ),
        options?.signal
      )
    },
    acquire: (name, options) => {
      const problem = problemOf(options, ofLock)
      if (problem !== undefined) return Promise.reject(problem)
      return hold(
        Effect.gen(function*() {
          const lease = yield* Mutex.acquire(name, options)
          // @effect-diagnostics-next-line abortControllerInEffect:off -- the loss is this signal's reason
          const controller = new AbortController()
          yield* Effect.addFinalizer(() => Effect.sync(() => controller.abort()))
          yield* Effect.forkScoped(Effect.andThen(lease.lost, abort(controller, lease)))
          return { lease, signal: controller.signal }
        }),
        options?.signal
      ).then(({ release, value: { lease, signal } }) =>
        Object.assign(view(lease), { signal, release, [Symbol.asyncDispose]: release })
      )
    },
    lead: (name: string, ...args: readonly [Work<unknown>] | readonly [LeadOptions, Work<unknown>]) => {
      const { options, problem, work } = unchecked(args, ofLead)
      if (problem !== undefined) return Promise.reject(problem)
      const unused = options?.cron === undefined &&
        (["timeZone", "catchUp"] as const).find((option) => options?.[option])
      if (unused) return Promise.reject(new InvalidConfig({ option: unused, problem: "it needs cron" }))
      return hold(Effect.gen(function*() {
        const contender = yield* Mutex.contend(name, options)
        const driven = options?.cron === undefined
          ? contender.whileLeader(bodyOf(work))
          : runJobs(contender, [{
            name,
            schedule: cron(options.cron, { timeZone: options.timeZone }),
            catchUp: options.catchUp,
            run: ({ lease }) => bodyOf(work)(lease)
          }])
        const fiber = yield* Effect.forkScoped(driven, { startImmediately: true })
        // If the schedule is invalid, the fiber has already failed
        yield* fiber.pollUnsafe() ?? Effect.void
        return contender
      })).then(({ release, value }): Contender => ({
        get isLeader() {
          return Effect.runSync(value.state)._tag === "Leading"
        },
        stop: release,
        [Symbol.asyncDispose]: release
      }))
    },
    close,
    [Symbol.asyncDispose]: close
  }
}

/**
 * Connects to Redis. Resolves to a `Simba` once connected.
 *
 * **Details**
 *
 * Rejects with `InvalidConfig` or `BackendError`. Create one `Simba` for the whole process. Close it before the process
 * exits, to let other processes acquire its mutexes immediately.
 *
 * **Example** (Holding a mutex for the rest of a function)
 *
 * ```ts
 * import { createSimba } from "@effect-simba/redis/promise"
 *
 * const simba = await createSimba({ url: "redis://localhost:6379", ttl: "5 seconds" })
 *
 * export const closeTheBooks = async (write: (token: number) => Promise<void>) => {
 *   await using lease = await simba.acquire("books", { timeout: "30 seconds" })
 *   lease.ensure()
 *   await write(lease.token)
 * }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const createSimba = (unchecked: Options = {}): Promise<Simba> => {
  const problem = problemWith(unchecked, ofSimba) ?? problemWith(unchecked.redis, ofRedis)
  if (problem !== undefined) return Promise.reject(problem)
  const { client, log, redis, url, ...options } = unchecked
  if (log !== undefined && typeof log !== "function") {
    return Promise.reject(new InvalidConfig({ option: "log", problem: "it must be a function" }))
  }
  const commandTimeout = redis?.commandTimeout ?? options.commandTimeout
  const layer = client === undefined
    ? RedisMutex.layer({ ...options, redis: { ...redis, url } })
    // Validate the options first, as `RedisMutex.layer` does
    : Layer.unwrap(Effect.as(
      MutexConfig.make(options),
      RedisMutex.layerRedis(options).pipe(Layer.provide(IoRedis.layerClient(client, { ...redis, commandTimeout })))
    ))
  const runtime = ManagedRuntime.make(log === undefined ? layer : Layer.provideMerge(layer, logTo(log)))
  return Effect.runPromise(
    Effect.as(Effect.onError(runtime.contextEffect, () => runtime.disposeEffect), make(runtime))
  )
}
