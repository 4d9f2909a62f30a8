/** `run`: runs a shell command while holding a mutex, and kills the command if the lease is lost. */
import type { Lease } from "@effect-simba/core/Lease"
import * as Mutex from "@effect-simba/core/Mutex"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as ChildProcess from "effect/process/ChildProcess"
import { constants } from "node:os"
import { exitCodes, Partly, Stop, stop } from "./exitCodes.ts"
import { mutexes, nameArgument } from "./mutexCommands.ts"
import { printable } from "./output.ts"
import { durationFlag, switchFlag } from "./settings.ts"

/** Ends with the exit code that a shell would use for a command that cannot start. */
const startFailure = (command: string) => ({ message, reason: { _tag } }: PlatformError) =>
  new Stop({
    code: _tag === "NotFound" ? exitCodes.notFound : exitCodes.notExecutable,
    message: `cannot run ${printable(command)}: ${
      _tag === "NotFound" ? "no such command" : _tag === "PermissionDenied" ? "permission denied" : message
    }`
  })

const signalFailure = (error: PlatformError) => {
  const signal = /signal: '(\w+)'/.exec(String(error.cause))?.[1] as keyof typeof constants.signals | undefined
  const number = signal === undefined ? undefined : constants.signals[signal]
  return new Stop({ code: number === undefined ? exitCodes.negative : 128 + number, message: "" })
}

const execute = Effect.fnUntraced(function*(
  lease: Lease,
  [command, ...args]: ReadonlyArray<string>,
  grace: Duration.Duration
) {
  // The default: the command leads its own process group, so its children are killed with it
  const child = yield* ChildProcess.make(command!, args, {
    stdin: "inherit",
    stdout: "inherit",
    stderr: "inherit",
    env: { SIMBA_MUTEX: lease.mutex, SIMBA_OWNER: lease.id, SIMBA_TOKEN: String(lease.token) },
    extendEnv: true
  }).pipe(Effect.mapError(startFailure(command!)))
  // Once the lease is lost, another process may own the mutex, so kill the command without a grace period
  const end = Effect.raceFirst(
    Effect.ignore(child.kill({ killSignal: "SIGTERM", forceKillAfter: grace })),
    Effect.andThen(lease.lost, Effect.ignore(child.kill({ killSignal: "SIGKILL" })))
  )
  const first = yield* Effect.raceFirst(Effect.mapError(child.exitCode, signalFailure), lease.lost).pipe(
    Effect.ensuring(end)
  )
  if (typeof first !== "number") return yield* first
  if (first !== 0) return yield* new Stop({ code: first, message: "" })
}, Effect.scoped)

export const runCommand = Command.make(
  "run",
  {
    name: nameArgument,
    command: Argument.String("command").pipe(
      Argument.withDescription("The command and its arguments, after --"),
      Argument.atLeast(1)
    ),
    timeout: durationFlag("timeout", "How long to wait for the mutex (default: no limit)"),
    ifAvailable: switchFlag("if-available", "Give up immediately if the mutex has an owner or waiters"),
    ttl: durationFlag("ttl", "How long a lease lasts without renewal, not counting the transition (default: 10s)"),
    transition: durationFlag(
      "transition",
      "How long after the ttl the owner may still renew, before anyone else can take over (default: 6s)"
    ),
    grace: durationFlag("grace", "How long the command may keep running after SIGTERM, before SIGKILL (default: 10s)")
  },
  Effect.fnUntraced(
    function*({ command, grace = Duration.seconds(10), ifAvailable, name, timeout, transition, ttl }) {
      if (ifAvailable && timeout !== undefined) {
        return yield* stop("usage", "Use --timeout or --if-available, not both.")
      }
      // A shell passes an unset variable in quotes as an empty command
      if (command[0] === "") return yield* stop("usage", "The command is empty.")
      const lease = ifAvailable
        ? Option.getOrUndefined(yield* Mutex.acquireIfAvailable(name, { ttl, transition }))
        : yield* Mutex.acquire(name, { ttl, transition, timeout })
      if (lease === undefined) return yield* stop("notAcquired", `"${printable(name)}" is not free`)
      yield* execute(lease, command, grace)
    },
    Effect.scoped,
    Effect.provide(mutexes),
    Effect.mapError((cause) => new Partly({ cause }))
  )
).pipe(
  Command.withDescription("Run a command while holding a mutex; kill it if the lease is lost"),
  Command.withExamples([
    {
      command: "effect-simba run nightly --if-available -- ./backup.sh --full",
      description: "Run on only one machine in the fleet"
    }
  ])
)
