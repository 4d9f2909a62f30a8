/**
 * Spawns the members of a fleet as processes. Each member reports its events on standard output, one line of JSON per
 * event.
 */
import { Effect, Fiber, Option, Schema, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { fileURLToPath } from "node:url"

export interface Process {
  /** Waits until the process has exited and its last event has been handled. */
  readonly ended: Effect.Effect<void>
  /** Sends the signal, then awaits `ended`. */
  readonly end: (signal: "SIGKILL" | "SIGTERM") => Effect.Effect<void>
}

/** Runs a module in a new process. Closing the scope ends the process. */
export const spawn = Effect.fnUntraced(function*<E, I, R = never>(options: {
  /** The module's URL. */
  readonly module: string
  readonly args: ReadonlyArray<string>
  readonly redis: string
  readonly event: Schema.Codec<E, I>
  readonly onEvent: (event: E) => Effect.Effect<void, never, R>
  /** Called with each line that is not an event. */
  readonly onText: (line: string) => Effect.Effect<void, never, R>
  /** Called if the process fails, unless `end` was called before. */
  readonly onFailure: (problem: string) => Effect.Effect<void, never, R>
}) {
  const child = yield* ChildProcess.make(process.execPath, [fileURLToPath(options.module), ...options.args], {
    env: { REDIS_URL: options.redis },
    extendEnv: true,
    stderr: "inherit",
    forceKillAfter: "10 seconds"
  })
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(options.event))
  let isAskedToEnd = false
  const watch = Effect.gen(function*() {
    yield* child.stdout.pipe(
      Stream.decodeText,
      Stream.splitLines,
      Stream.runForEach((line) =>
        Option.match(decode(line), { onSome: options.onEvent, onNone: () => options.onText(line) })
      )
    )
    const code = yield* child.exitCode
    return code === 0 ? undefined : `exited with code ${code}`
  }).pipe(
    // There is no exit code if a signal ended the process
    Effect.catch((error) => Effect.succeed(error.message)),
    Effect.flatMap((problem) => problem === undefined || isAskedToEnd ? Effect.void : options.onFailure(problem))
  )
  const watching = yield* Effect.forkScoped(watch)
  const ended = Effect.asVoid(Fiber.await(watching))
  return {
    ended,
    end: (killSignal) =>
      Effect.suspend(() => {
        isAskedToEnd = true
        // Signalling a process that has already exited fails
        return Effect.andThen(Effect.ignore(child.kill({ killSignal })), ended)
      })
  } satisfies Process as Process
})

/** Reports events to the parent process. */
export const reporter = <E, I>(event: Schema.Codec<E, I>): (event: E) => void => {
  const encode = Schema.encodeSync(Schema.fromJsonString(event))
  // Ignore write errors. If the parent is dead, nobody reads the events, but this process must still release its locks
  process.stdout.on("error", () => undefined)
  return (event) => void process.stdout.write(`${encode(event)}\n`)
}

const parentDied = Effect.callback<void>((resume) => {
  process.stdin.once("close", () => resume(Effect.void)).resume()
  // An open standard input would keep this process alive
  return Effect.sync(() => void process.stdin.destroy())
})

/** Interrupts the work when this process's standard input closes, because that means that the parent has died. */
export const untilParentDies = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A | void, E, R> =>
  Effect.raceFirst(work, parentDied)
