/** `ls`, `show` and `release`: the mutexes of a server as an operator sees them. */
import * as Mutex from "@effect-simba/core/Mutex"
import type { MutexState } from "@effect-simba/core/MutexStore"
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
import * as RedisMutexStore from "../../RedisMutexStore.ts"
import { exitCodes, Stop } from "./exitCodes.ts"
import { formatDuration, type Paint, plural, print, printable, table } from "./output.ts"
import { redis } from "./settings.ts"

export const mutexes = Mutex.layer().pipe(Layer.provide(RedisMutexStore.layer), Layer.provide(redis))

export const nameArgument = Argument.String("name").pipe(Argument.withDescription("The name of the mutex"))

/** The mutexes that can be read, and those that cannot, since another program wrote their keys. */
export const lookAt = (names: ReadonlyArray<string>, waiters: number) =>
  Effect.map(
    Effect.forEach(
      names,
      (name) =>
        Mutex.inspect(name, { waiters }).pipe(
          Effect.map((state) => Result.succeed({ name, state })),
          Effect.catchIf(
            (error) => error._tag !== "BackendError" || !error.retryable,
            (error) => Effect.succeed(Result.fail({ name, error }))
          )
        ),
      // A few at a time, so that an operator's question is no load
      { concurrency: 16 }
    ),
    Arr.separate
  )

export const namesWith = (prefix: string) =>
  Effect.map(
    Mutex.list.pipe(Stream.filter((name) => name.startsWith(prefix)), Stream.runCollect),
    (names) => [...names].sort()
  )

/** A mutex as JSON shows it: times in milliseconds. */
export const toJson = (name: string, { ownership, token, waiters, waiting }: MutexState) => ({
  name,
  owner: ownership._tag === "Held" ? ownership.owner : null,
  // A key that another program made may have no end
  timeLeft: ownership._tag === "Held" && ownership.remaining !== undefined
    ? Duration.toMillis(ownership.remaining)
    : null,
  token: token ?? null,
  waiting,
  waiters: waiters.map(({ id, waited }) => ({ id, waited: Duration.toMillis(waited) }))
})

export const ownerOf = ({ ownership }: MutexState): string => ownership._tag === "Held" ? ownership.owner : "-"

export const timeLeftOf = ({ ownership }: MutexState): string =>
  ownership._tag === "Free" ? "-" : ownership.remaining === undefined ? "no end" : formatDuration(ownership.remaining)

const ls = Command.make(
  "ls",
  {
    prefix: Argument.String("prefix").pipe(
      Argument.withDescription("Only names that begin with it"),
      Argument.optional
    )
  },
  Effect.fnUntraced(function*({ prefix }) {
    const names = yield* namesWith(Option.getOrElse(prefix, () => ""))
    const [states, unreadable] = yield* lookAt(names, 1)
    yield* print(
      states.map(({ name, state }) => {
        const { waiters: _, ...rest } = toJson(name, state)
        return rest
      }),
      (paint) => [
        ...table(
          ["NAME", "OWNER", "TIME LEFT", "TOKEN", "WAITING"],
          states.map(({ name, state }) => [
            name,
            ownerOf(state),
            timeLeftOf(state),
            String(state.token ?? "-"),
            String(state.waiting)
          ]),
          paint
        ),
        paint("dim", plural(states.length, "mutex", "mutexes"))
      ]
    )
    if (unreadable.length > 0) {
      return yield* new Stop({
        code: exitCodes.negative,
        message: unreadable.map(({ error, name }) => `Cannot show "${printable(name)}": ${error.message}`).join("\n")
      })
    }
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("List the mutexes that are owned or waited for"))

const describe = (name: string, state: MutexState, paint: Paint): ReadonlyArray<string> => {
  const field = (title: string, value: string) => `${paint("dim", title.padEnd(11))}${printable(value)}`
  return [
    field("mutex", name),
    field("owner", state.ownership._tag === "Held" ? state.ownership.owner : "nobody"),
    field("time left", timeLeftOf(state)),
    field("token", String(state.token ?? "-")),
    field("waiting", String(state.waiting)),
    ...state.waiters.map(({ id, waited }, at) =>
      `${String(at + 1).padStart(5)}. ${printable(id)}  ${formatDuration(waited)}`
    )
  ]
}

const show = Command.make(
  "show",
  {
    name: nameArgument,
    waiters: Flag.Int("waiters").pipe(
      Flag.withDescription("How many waiters to name (default: 20)"),
      Flag.withDefault(20)
    )
  },
  Effect.fnUntraced(function*({ name, waiters }) {
    const state = yield* Mutex.inspect(name, { waiters })
    yield* print(toJson(name, state), (paint) => describe(name, state, paint))
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("Show owner, time left, token and queue of a mutex"))

const confirmed = Effect.fnUntraced(function*(name: string, state: MutexState) {
  const { canPrompt } = yield* TerminalCapabilities.TerminalCapabilities
  if (!canPrompt) {
    return yield* new Stop({ code: exitCodes.usage, message: "Nobody can be asked here: give --yes, too." })
  }
  return yield* Prompt.run(
    Prompt.Confirm({
      message: `Take "${printable(name)}" from ${printable(ownerOf(state))}? Its work may go on for a moment.`
    })
  )
})

const release = Command.make(
  "release",
  {
    name: nameArgument,
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Required: the owner is somebody else"),
      Flag.withDefault(false)
    ),
    yes: Flag.Boolean("yes").pipe(
      Flag.withAlias("y"),
      Flag.withDescription("Do not ask"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ force, name, yes }) {
    if (!force) {
      return yield* new Stop({
        code: exitCodes.usage,
        message:
          "Another process owns the mutex, so this takes --force. Its owner loses the lease and may work on for a moment."
      })
    }
    const state = yield* Mutex.inspect(name)
    if (state.ownership._tag === "Free") {
      return yield* new Stop({ code: exitCodes.negative, message: `Nobody owns "${printable(name)}".` })
    }
    if (!yes && !(yield* confirmed(name, state))) {
      return yield* new Stop({ code: exitCodes.negative, message: "Nothing was changed." })
    }
    const before = yield* Mutex.forceRelease(name)
    const owner = before._tag === "Held" ? before.owner : null
    yield* print({ name, takenFrom: owner }, (paint) => [
      owner === null
        ? `"${printable(name)}" was free by then`
        : paint("green", `took "${printable(name)}" from ${printable(owner)}`)
    ])
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("Take a mutex from its owner; the first waiter gets it"))

export const mutexCommands = [ls, show, release] as const
