/** `list`, `inspect` and `release`: commands for the mutexes on a server. */
import * as Mutex from "@effect-simba/core/Mutex"
import type { MutexName } from "@effect-simba/core/MutexName"
import type { MutexState } from "@effect-simba/core/MutexState"
import type { InvalidName, StoreError } from "@effect-simba/core/SimbaError"
import { mutexKeys as keys, Redis } from "@effect-simba/redis/RedisInternals"
import * as RedisMutex from "@effect-simba/redis/RedisMutex"
import * as Arr from "effect/Array"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Prompt from "effect/cli/Prompt"
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import { exitCodes, Partly, Stop, stop } from "./exitCodes.ts"
import { field, formatDuration, type Paint, plural, print, printable, table } from "./output.ts"
import { countFlag, redis, switchFlag } from "./settings.ts"

export const mutexes = RedisMutex.layerRedis().pipe(Layer.provideMerge(redis))

export const nameArgument = Argument.String("name").pipe(Argument.withDescription("The name of the mutex"))

/**
 * Reads these mutexes. A mutex whose keys were written by another program cannot be read, so its error is returned
 * separately.
 */
export const readMutexes = (names: ReadonlyArray<string>, limit: number) =>
  Effect.map(
    Effect.forEach(
      names,
      (name) =>
        Mutex.inspect(name, { limit }).pipe(
          Effect.map((state) => Result.succeed({ name, state })),
          Effect.catchIf(
            (error) => error._tag !== "BackendError" || !error.isRetryable,
            (error) => Effect.succeed(Result.fail({ name, error }))
          )
        ),
      // Limit concurrency to spare the server
      { concurrency: 16 }
    ),
    Arr.separate
  )

export const namesWith = (prefix: string) =>
  Effect.map(
    Mutex.list.pipe(Stream.filter((name) => name.startsWith(prefix)), Stream.runCollect),
    (names) => [...names].sort()
  )

/** JSON for a mutex. Times are in milliseconds. */
export const toJson = (name: string, { ownership, token, waiters, waiting }: MutexState) => ({
  name,
  owner: ownership._tag === "Held" ? ownership.owner : null,
  // A key created by another program may have no expiry
  timeLeft: ownership._tag === "Held" && ownership.timeLeft !== undefined
    ? Duration.toMillis(ownership.timeLeft)
    : null,
  token: token ?? null,
  waiting,
  waiters: waiters.map(({ id, waited }) => ({ id, waited: Duration.toMillis(waited) }))
})

export const ownerOf = ({ ownership }: MutexState): string => ownership._tag === "Held" ? ownership.owner : "-"

export const timeLeftOf = ({ ownership }: MutexState): string =>
  ownership._tag === "Free" ? "-" : ownership.timeLeft === undefined ? "no end" : formatDuration(ownership.timeLeft)

const list = Command.make(
  "list",
  {
    prefix: Argument.String("prefix").pipe(
      Argument.withDescription("List only names that start with this prefix"),
      Argument.optional
    )
  },
  Effect.fnUntraced(function*({ prefix }) {
    const names = yield* namesWith(Option.getOrElse(prefix, () => ""))
    const [states, unreadable] = yield* readMutexes(names, 1)
    yield* print(
      states.map(({ name, state }) => Struct.omit(toJson(name, state), ["waiters"])),
      (paint) => [
        ...table(states, {
          NAME: ({ name }) => name,
          OWNER: ({ state }) => ownerOf(state),
          "TIME LEFT": ({ state }) => timeLeftOf(state),
          TOKEN: ({ state }) => state.token,
          WAITING: ({ state }) => state.waiting
        }, paint),
        paint("dim", plural(states.length, "mutex", "mutexes"))
      ]
    )
    if (unreadable.length > 0) {
      const lines = unreadable.map(({ error, name }) => `Cannot inspect "${printable(name)}": ${error.message}`)
      return yield* new Partly({ cause: new Stop({ code: exitCodes.negative, message: lines.join("\n") }) })
    }
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("List the mutexes that have an owner or waiters"))

const describe = (name: string, state: MutexState, paint: Paint): ReadonlyArray<string> => [
  field("mutex", name, paint),
  field("owner", state.ownership._tag === "Held" ? state.ownership.owner : "nobody", paint),
  field("time left", timeLeftOf(state), paint),
  field("token", String(state.token ?? "-"), paint),
  field("waiting", String(state.waiting), paint),
  ...state.waiters.map(({ id, waited }, at) =>
    `${String(at + 1).padStart(5)}. ${printable(id)}  ${formatDuration(waited)}`
  )
]

const wrongType = "WRONGTYPE"

/** Whether a key's value was written by another program or by a newer version. */
const isForeign = ({ _tag, message }: StoreError | InvalidName) =>
  _tag === "ProtocolError" || (_tag === "BackendError" && message.includes(wrongType))

/**
 * Finds the key whose value was written by another program. Returns the owner key only if the other keys are fine,
 * because deleting it by mistake would free the mutex.
 */
const foreignKey = Effect.fnUntraced(function*(mutex: MutexName) {
  const { send } = yield* Redis
  const isWrong = (command: string, key: string) =>
    Effect.match(send(command, key), {
      onFailure: ({ cause }) => String(cause).includes(wrongType),
      // The length of the queue, or the last token
      onSuccess: (reply) => !/^\d{1,16}$/.test(String(reply ?? 0))
    })
  if (yield* isWrong("ZCARD", keys.queue(mutex))) return keys.queue(mutex)
  return (yield* isWrong("GET", keys.fence(mutex))) ? keys.fence(mutex) : keys.owner(mutex)
})

/** Reads a mutex. If one of its keys was written by another program, the error names that key. */
const read = (verb: string, name: string, options?: { readonly limit: number }) =>
  Effect.catchIf(
    Mutex.inspect(name, options),
    isForeign,
    (error) =>
      Effect.flatMap(foreignKey(name as MutexName), (key) =>
        stop(
          "negative",
          `Cannot ${verb} "${printable(name)}": ${error.message} ` +
            `If no program needs the key "${printable(key)}", delete it.`
        ))
  )

const inspect = Command.make(
  "inspect",
  { name: nameArgument, limit: countFlag("limit", "Maximum number of waiters to list", 20) },
  Effect.fnUntraced(function*({ limit, name }) {
    const state = yield* read("inspect", name, { limit })
    yield* print(toJson(name, state), (paint) => describe(name, state, paint))
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("Show the owner, remaining time, token and queue of a mutex"))

/** The user can confirm only on a terminal. */
const canConfirm = Effect.map(TerminalCapabilities.TerminalCapabilities, ({ canPrompt }) => canPrompt)

const confirmed = Effect.fnUntraced(function*(name: string, state: MutexState) {
  const message = `Take "${printable(name)}" from ${printable(ownerOf(state))}? Its work may continue for a moment.`
  return yield* Prompt.run(Prompt.Confirm({ message }))
})

const release = Command.make(
  "release",
  {
    name: nameArgument,
    force: switchFlag("force", "Required, because the owner may still be working"),
    yes: Flag.withAlias(switchFlag("yes", "Do not ask for confirmation"), "y")
  },
  Effect.fnUntraced(function*({ force, name, yes }) {
    const state = yield* read("release", name)
    if (state.ownership._tag === "Free") return yield* stop("negative", `Nobody owns "${printable(name)}".`)
    const missing = [...(force ? [] : ["--force"]), ...(yes || (yield* canConfirm) ? [] : ["--yes"])]
    if (missing.length > 0) {
      return yield* stop(
        "usage",
        `${printable(state.ownership.owner)} owns "${printable(name)}", so this takes ${missing.join(" and ")}. ` +
          "The owner loses the lease and may continue to work for a moment."
      )
    }
    if (!yes) {
      if (!(yield* confirmed(name, state))) return yield* stop("negative", "Nothing was changed.")
      // The user's confirmation covers only the owner named in the prompt. The mutex may have changed hands since then.
      const current = ownerOf(yield* read("release", name))
      if (current !== ownerOf(state)) {
        return yield* stop(
          "negative",
          `Nothing was changed: ${current === "-" ? "nobody" : printable(current)} now owns "${printable(name)}".`
        )
      }
    }
    const before = yield* Mutex.forceRelease(name)
    const owner = before._tag === "Held" ? before.owner : null
    yield* print({ name, takenFrom: owner }, (paint) => [
      owner === null
        ? `"${printable(name)}" was already free`
        : paint("green", `took "${printable(name)}" from ${printable(owner)}`)
    ])
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("Take a mutex from its owner; the first waiter gets it"))

export const mutexCommands = [list, inspect, release] as const
