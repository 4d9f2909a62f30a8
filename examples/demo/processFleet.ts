/** Runs the workers as separate processes that share a Redis server. */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { Context, Effect, Layer, Queue } from "effect"
import { now } from "../shared/clock.ts"
import { type Process, spawn } from "../shared/process.ts"
import { Event } from "./events.ts"
import { type Fleet, holdBack } from "./fleet.ts"
import * as plan from "./plan.ts"

/** The mutex layer for one contender, by default on the Redis at `REDIS_URL`. */
export const mutexes = (processName: string, url?: string) =>
  RedisMutex.layerFromEnv({ ...plan.options, processName, redis: { url } })

export const make = Effect.fnUntraced(function*(url: string) {
  // The director has its own connection
  const observer = Context.get(yield* Layer.build(mutexes("director", url)), Mutex.Mutex)
  const { begin } = yield* Effect.provideService(holdBack, Mutex.Mutex, observer)
  const events = yield* Queue.unbounded<Event>()
  const processes = new Map<string, Process>()
  for (const worker of plan.workers) {
    const process = yield* spawn({
      module: import.meta.resolve("./member.ts"),
      args: [worker],
      redis: url,
      event: Event,
      onEvent: (event) => Queue.offer(events, event),
      onText: (text) => Effect.flatMap(now, (at) => Queue.offer(events, { _tag: "Note", worker, at, text })),
      onFailure: (problem) => Effect.flatMap(now, (at) => Queue.offer(events, { _tag: "Failed", worker, at, problem }))
    })
    processes.set(worker, process)
  }
  return {
    events,
    begin,
    crash: (worker) => processes.get(worker)!.end("SIGKILL"),
    interrupt: (worker) => processes.get(worker)!.end("SIGTERM"),
    inspect: Effect.orDie(observer.inspect(plan.mutex))
  } satisfies Fleet as Fleet
})
