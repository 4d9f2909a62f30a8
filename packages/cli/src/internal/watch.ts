/** `watch`: shows mutexes live on a terminal, or prints one line per event if the output is not a terminal. */
import * as Mutex from "@effect-simba/core/Mutex"
import type { OwnerEvent } from "@effect-simba/core/OwnerEvent"
import type { BackendError } from "@effect-simba/core/SimbaError"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Terminal from "effect/Terminal"
import { mutexes, namesWith, ownerOf, readMutexes, toJson } from "./mutexCommands.ts"
import { type Paint, paint, print, printable } from "./output.ts"
import { durationFlag, Json } from "./settings.ts"
import { type Poll, WatchView } from "./watchView.ts"

/** The maximum number of mutexes to poll. More would burden Redis, and nobody could read that many lines. */
const mostMutexes = 100

/** Reads the mutexes, omitting unreadable ones. `list` reports those. */
const readable = (names: ReadonlyArray<string>) => Effect.map(readMutexes(names, 20), ([polls]) => polls)

/** An outage does not end the watch. */
const isOutage = (error: { readonly _tag: string; readonly isRetryable?: boolean }): error is BackendError =>
  error._tag === "BackendError" && error.isRetryable === true

const clockTime = Effect.map(DateTime.now, DateTime.formatIso)

const eventText = (at: string, event: OwnerEvent, paint: Paint): string => {
  const what = event._tag === "Gap" ? "may have missed a change" : event.owner
  const more = event._tag === "HandedOver" ? ` to ${event.successor}` : "token" in event ? `, token ${event.token}` : ""
  return `${paint("dim", at.slice(11, 23))} ${event._tag.padEnd(10)} ${printable(what + more)}`
}

const eventsOf = (
  name: string,
  pollInterval: Duration.Duration,
  report: (at: string, event: OwnerEvent) => ReturnType<typeof print>
) =>
  Stream.runForEach(
    Mutex.events(name, { pollInterval }),
    (event) => Effect.flatMap(clockTime, (at) => report(at, event))
  )

/** Polls all mutexes, and prints a line each time a mutex changes owner. */
const changesOfAll = Effect.fnUntraced(function*(every: Duration.Duration) {
  const before = new Map<string, string>()
  const report = Effect.fnUntraced(function*(name: string, poll: Poll | undefined) {
    const at = yield* clockTime
    const owner = poll === undefined ? "-" : ownerOf(poll.state)
    if ((before.get(name) ?? "-") === owner) return
    if (owner === "-") before.delete(name)
    else before.set(name, owner)
    yield* print(
      { at, ...(poll === undefined ? { name, owner: null } : toJson(name, poll.state)) },
      () => [`${at.slice(11, 23)} ${printable(name)} ${owner === "-" ? "is free" : `is owned by ${printable(owner)}`}`]
    )
  })
  let isLost = false
  const lost = Effect.fnUntraced(function*(error: BackendError) {
    if (isLost) return
    isLost = true
    const at = yield* clockTime
    yield* print({ at, lost: error.message }, () => [`${at.slice(11, 23)} no reply: ${printable(error.message)}`])
  })
  const poll = Effect.gen(function*() {
    const polls = yield* Effect.flatMap(namesWith(""), readable)
    isLost = false
    const byName = new Map(polls.map((poll) => [poll.name, poll]))
    for (const name of new Set([...before.keys(), ...byName.keys()])) yield* report(name, byName.get(name))
  })
  return yield* Effect.forever(Effect.andThen(Effect.catchIf(poll, isOutage, lost), Effect.sleep(every)))
})

/** Switches to the terminal's alternate screen and hides the cursor until the scope closes. */
const onOtherScreen = Effect.fnUntraced(function*(terminal: Terminal.Terminal) {
  const show = (text: string) => Effect.ignore(terminal.display(text))
  yield* Effect.acquireRelease(show("\u001B[?1049h\u001B[?25l"), () => show("\u001B[?25h\u001B[?1049l"))
  return (frame: ReadonlyArray<string>) =>
    show(`\u001B[H${frame.map((line) => `${line}\u001B[K`).join("\r\n")}\u001B[J`)
})

const live = Effect.fnUntraced(function*(name: string | undefined, every: Duration.Duration) {
  const terminal = yield* Terminal.Terminal
  const draw = yield* onOtherScreen(terminal)
  const view = new WatchView()
  const colours = yield* paint
  const titled = (text: string) =>
    Effect.map(clockTime, (at) => colours("dim", `${at.slice(11, 19)} UTC  ${printable(text)}`))
  const frame = Effect.gen(function*() {
    const names = name === undefined ? yield* namesWith("") : [name]
    view.poll(yield* readable(names.slice(0, mostMutexes)))
    const size = { columns: (yield* terminal.columns) || 80, rows: (yield* terminal.rows) || 24 }
    yield* draw([
      yield* titled("Ctrl-C ends"),
      ...name === undefined ? view.all(names.length, size, colours) : view.one(name, size, colours)
    ])
  }).pipe(
    Effect.catchIf(isOutage, (error) => Effect.flatMap(titled(`no reply: ${error.message}`), (title) => draw([title]))),
    Effect.andThen(Effect.sleep(every))
  )
  const noted = name === undefined
    ? Effect.never
    : eventsOf(name, every, (at, event) => Effect.sync(() => view.note(eventText(at, event, colours))))
  yield* Effect.raceFirst(Effect.forever(frame), noted)
}, Effect.scoped)

export const watch = Command.make(
  "watch",
  {
    name: Argument.String("name").pipe(Argument.withDescription("One mutex (default: all)"), Argument.optional),
    pollInterval: durationFlag("poll-interval", "Time between polls (default: 250ms for one mutex, 1s for all)").pipe(
      Flag.filter((every) => every === undefined || Duration.isPositive(every), () => "more than zero")
    ),
    duration: durationFlag("for", "Stop after this time (default: run until Ctrl-C)")
  },
  Effect.fnUntraced(function*({ duration = Duration.infinity, name: wanted, pollInterval }) {
    const name = Option.getOrUndefined(wanted)
    const pause = pollInterval ?? (name === undefined ? Duration.seconds(1) : Duration.millis(250))
    const { canAnimate } = yield* TerminalCapabilities.TerminalCapabilities
    const isLive = canAnimate && !(yield* Json)
    yield* Effect.gen(function*() {
      if (isLive) return yield* live(name, pause)
      if (name === undefined) return yield* changesOfAll(pause)
      yield* eventsOf(name, pause, (at, event) => print({ at, ...event }, (paint) => [eventText(at, event, paint)]))
    }).pipe(Effect.timeoutOption(duration))
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("Follow owners, queues and events; draws a live timeline on a terminal"))
