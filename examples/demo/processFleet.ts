/** Workers as processes of their own, on a real Redis. They report over their standard output. */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { Context, Effect, Layer, Queue, Stdio, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { fileURLToPath } from "node:url"
import { decode, encode, type Event, isEnding, now } from "./events.ts"
import type { Fleet } from "./fleet.ts"
import * as plan from "./plan.ts"
import { run } from "./worker.ts"

const layer = (contender: string, url?: string) =>
  RedisMutex.layerFromEnv({
    ...plan.options,
    contender,
    redis: { commandTimeout: plan.options.commandTimeout, ...(url === undefined ? {} : { url }) }
  })

/** What a process of the fleet runs. It ends with the director: its standard input ends when the director dies. */
export const member = (worker: string): Effect.Effect<void, never, Stdio.Stdio> =>
  Effect.gen(function*() {
    const stdio = yield* Stdio.Stdio
    // A director that died reads nothing; the worker has to release all the same
    process.stdout.on("error", () => undefined)
    const report = (event: Event) => void process.stdout.write(`${encode(event)}\n`)
    yield* Effect.raceFirst(run(worker, layer(worker), report), Effect.ignore(Stream.runDrain(stdio.stdin)))
  })

const spawn = Effect.fnUntraced(function*(worker: string, url: string, events: Queue.Queue<Event>) {
  const child = yield* ChildProcess.make(process.execPath, [
    fileURLToPath(import.meta.resolve("./main.ts")),
    "worker",
    worker
  ], {
    env: { REDIS_URL: url },
    extendEnv: true,
    forceKillAfter: "3 seconds"
  })
  let isOver = false
  const read = child.stdout.pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.mapEffect((line) => decode(line)),
    Stream.runForEach((event) => {
      isOver = isOver || isEnding(event)
      return Queue.offer(events, event)
    })
  )
  const follow = Effect.all([Effect.ignore(read), Stream.mkString(Stream.decodeText(child.stderr))], {
    concurrency: "unbounded"
  }).pipe(
    Effect.flatMap(([, errors]) =>
      Effect.flatMap(
        now,
        (at) =>
          isOver
            ? Effect.void
            : Queue.offer(events, { _tag: "Failed", worker, at, problem: errors.trim() || "it ended" })
      )
    ),
    Effect.ignore
  )
  yield* Effect.forkScoped(follow)
  return {
    child,
    disown: () => {
      isOver = true
    }
  }
})

export const make = Effect.fnUntraced(function*(url: string) {
  // The director's own connection, to look at the mutex from outside
  const observer = Context.get(yield* Layer.build(layer("director", url)), Mutex.Mutex)
  const events = yield* Queue.unbounded<Event>()
  const members = new Map<string, Effect.Success<ReturnType<typeof spawn>>>()
  for (const worker of plan.workers) members.set(worker, yield* spawn(worker, url, events))
  const end = (worker: string, killSignal: "SIGKILL" | "SIGTERM") =>
    Effect.suspend(() => Effect.ignore(members.get(worker)!.child.kill({ killSignal })))
  return {
    events,
    crash: (worker) =>
      Effect.suspend(() => {
        members.get(worker)!.disown()
        return end(worker, "SIGKILL")
      }),
    interrupt: (worker) => end(worker, "SIGTERM"),
    owner: Effect.orDie(observer.owner(plan.mutex))
  } satisfies Fleet as Fleet
})
