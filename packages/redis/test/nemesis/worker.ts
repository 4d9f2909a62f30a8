/**
 * A worker process of a nemesis run, started by `fleet.ts`. It runs one of the simulator's programs on real servers and
 * appends its history to a file.
 */
import { Mutex, type SimbaError } from "@effect-simba/core"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import type { Simulation } from "@effect-simba/testkit"
import { Cause, Effect, Exit, Layer } from "effect"
import type { Redis } from "effect/persistence/Redis"
import { busy, confirm, transition, ttl } from "../simulate/behaviour.ts"
import { consume } from "../simulate/streamBehaviour.ts"
import { produce } from "../simulate/streamProducer.ts"
import { clockSince, type Fields, writer } from "./history.ts"
import { jobs } from "./jobs.ts"
import * as load from "./load.ts"
import { deaf, unfenced } from "./plants.ts"
import type { Connection } from "./topology.ts"

export const roles = ["mutex", "consumer", "producer", "jobs"] as const
export type Role = (typeof roles)[number]
export type Phase = "safety" | "liveness" | "closing"

/** Defects that can be planted, to verify that the checkers find them. */
export const plants = ["unfenced", "deaf"] as const

export interface WorkerConfig {
  readonly role: Role
  readonly name: string
  readonly index: number
  readonly generation: number
  readonly seed: number
  readonly epoch: string
  readonly history: string
  readonly connection: Connection
  readonly phase: Phase
  readonly load: load.Load
  readonly plant?: (typeof plants)[number] | undefined
}

/** Messages from the fleet to the process. */
export type Order =
  | { readonly _tag: "Phase"; readonly phase: Phase }
  /** Blocks the event loop. */
  | { readonly _tag: "Block"; readonly millis: number }
  | {
    readonly _tag: "State"
    readonly call: number
    readonly version: number
    readonly state: ReadonlyArray<[string, unknown]>
  }
  | { readonly _tag: "Stored"; readonly call: number; readonly accepted: boolean }

/** Requests from the process to the external system, which `fleet.ts` plays. */
export type Request =
  | { readonly _tag: "Read"; readonly call: number }
  | {
    readonly _tag: "Store"
    readonly call: number
    readonly version: number
    readonly state: ReadonlyArray<[string, unknown]>
    readonly notes: ReadonlyArray<readonly [kind: string, fields: Fields]>
  }

const main = (config: WorkerConfig) => {
  const { generation, index, name } = config
  const now = clockSince(config.epoch)
  const write = writer(config.history)
  const note: Simulation.Client["note"] = (kind, fields = {}) => write([now(), name, generation, kind, fields])
  let phase: Phase = config.phase
  const random = load.random(`${config.seed} ${name} ${generation}`)

  // Record when the event loop runs late, because work that was running at a deadline may finish its turn
  let due = now() + 20
  const lag = setInterval(() => {
    const late = now() - due
    if (late > 10) note("late", { from: due - 20, by: late })
    due = now() + 20
  }, 20)

  let calls = 0
  const pending = new Map<number, (order: Order) => void>()
  const ask = (request: (call: number) => Request) =>
    Effect.callback<Order>((resume) => {
      const call = ++calls
      pending.set(call, (order) => resume(Effect.succeed(order)))
      process.send?.(request(call))
      return Effect.sync(() => pending.delete(call))
    })

  process.on("message", (order: Order) => {
    if (order._tag === "Phase") {
      phase = order.phase
      if (phase === "closing") fiber.interruptUnsafe()
    } else if (order._tag === "Block") {
      const end = performance.now() + order.millis
      while (performance.now() < end);
    } else pending.get(order.call)?.(order)
  })

  /** Updates the external system with optimistic concurrency: starts over if another process wrote in the meantime. */
  const outside = <A>(
    delay: number,
    act: (outside: { readonly state: Map<string, unknown>; readonly note: Simulation.Client["note"] }) => A
  ): Effect.Effect<A> =>
    Effect.gen(function*() {
      yield* Effect.sleep(delay)
      for (;;) {
        const read = yield* ask((call) => ({ _tag: "Read", call }))
        if (read._tag !== "State") continue
        const state = new Map(read.state)
        const notes: Array<readonly [string, Fields]> = []
        const result = act({ state, note: (kind, fields = {}) => void notes.push([kind, fields]) })
        const { version } = read
        const stored = yield* ask((call) => ({ _tag: "Store", call, version, state: [...state], notes }))
        if (stored._tag === "Stored" && stored.accepted) {
          yield* Effect.sleep(delay)
          return result
        }
      }
    })

  const client: Simulation.Client = {
    name,
    index,
    generation,
    random,
    phase: () => phase,
    compute: (millis) =>
      Effect.sync(() => {
        const [low, high] = typeof millis === "number" ? [millis, millis] : millis
        const end = performance.now() + low + (high - low) * random()
        while (performance.now() < end);
      }),
    ready: Effect.void,
    interruptible: (_name, work) => work,
    note,
    outside: config.plant === "unfenced" ? unfenced(outside) : outside
  }

  const processName = `${name}.${generation}`
  const mutexes = RedisMutex.layerStore.pipe((store) =>
    Mutex.layer({ ttl, transition, confirmTimeout: confirm, commandTimeout: "500 millis", processName }).pipe(
      Layer.provide(store)
    )
  )
  const program = (): Effect.Effect<
    void,
    SimbaError.AlreadyHeld | SimbaError.InvalidConfig | SimbaError.InvalidName | SimbaError.StoreError,
    Redis | Subscriber
  > => {
    switch (config.role) {
      case "mutex":
        return Effect.provide(
          busy(client, config.plant === undefined ? load.mutexSettings : load.longHolds),
          config.plant === undefined ? mutexes : Layer.provide(deaf, mutexes)
        )
      case "consumer":
        return Effect.provide(consume(client, load.streamSettings(config.load)), RedisStreams.layerStore)
      case "producer":
        return Effect.provide(
          produce({ ...client, index: 0 }, load.streamSettings(config.load)),
          RedisStreams.layerStore
        )
      case "jobs":
        return Effect.provide(jobs(client), mutexes)
    }
  }

  const redis = config.connection._tag === "Single"
    ? IoRedis.layer(config.connection.options)
    : IoRedis.layerCluster(config.connection.options)

  // Retry after a failed start, as a supervisor would restart a process during an outage
  const run = Effect.scoped(Effect.provide(Effect.suspend(program), redis)).pipe(
    Effect.catchTag("BackendError", (error) => {
      note("failed", { error: error.message })
      return Effect.sleep("300 millis")
    }),
    Effect.forever
  )
  const fiber = Effect.runFork(run)
  fiber.addObserver((exit) => {
    clearInterval(lag)
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) {
      note("crashed", { cause: Cause.pretty(exit.cause) })
      process.exitCode = 1
    } else note("closed")
    process.disconnect?.()
    // Report the resources that keep a finished process alive
    setTimeout(() => console.error(`still open: ${process.getActiveResourcesInfo().join(", ")}`), 3000).unref()
  })
  process.on("disconnect", () => fiber.interruptUnsafe())
  note("started", { role: config.role, pid: process.pid })
}

if (process.env["SIMBA_NEMESIS_WORKER"] !== undefined) {
  main(JSON.parse(process.env["SIMBA_NEMESIS_WORKER"]) as WorkerConfig)
}
