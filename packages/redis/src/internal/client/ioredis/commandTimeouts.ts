/** Times out the commands of a connection with one timer, where ioredis sets two timers for each command. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { type Cluster, Command, Redis as Client } from "ioredis"
import type { CommandSink } from "../commandSink.ts"
import * as causes from "./causes.ts"
import { addressOf } from "./connection.ts"
import { monotonicMillis } from "./wallClock.ts"

const heads = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`)
const headOf = (text: string) => heads[text.length] ?? `\r\n$${text.length}\r\n`

/** A command without timers of ioredis. An ASCII text has as many bytes as characters, so none is measured. */
class UntimedCommand extends Command {
  constructor(name: string, args: ReadonlyArray<string>) {
    // A list of texts needs no copy. Untyped callers may pass other values, which ioredis converts
    const isPlain = args.every((arg) => typeof arg === "string")
    super(name, isPlain ? [] : [...args], { replyEncoding: "utf8" })
    if (isPlain) this.args = args as Array<string>
  }

  override setTimeout(): void {}

  override toWritable(socket: object): string | Buffer {
    const { args, name } = this
    let text = `*${args.length + 1}${headOf(name)}${name}`
    for (const arg of args) {
      if (typeof arg !== "string") return super.toWritable(socket)
      text += headOf(arg)
      text += arg
    }
    text += "\r\n"
    return Buffer.byteLength(text) === text.length ? Buffer.from(text, "latin1") : super.toWritable(socket)
  }
}

interface InFlight {
  readonly command: UntimedCommand
  /** Monotonic milliseconds, as all instants here. */
  readonly sent: number
  isSettled: boolean
  next: InFlight | undefined
}

/** Destroys a connection on which nothing arrives for twice the limit, also if it was only just opened. */
const watchSilence = (client: Client, limit: number, wake: () => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const state = { since: Infinity }
        const onData = () => {
          state.since = Infinity
        }
        const onConnect = () => {
          state.since = monotonicMillis()
          client.stream.on("data", onData)
          wake()
        }
        client.on("connect", onConnect).on("close", onData)
        client.stream.on("data", onData)
        return { state, onConnect, onData }
      }),
      ({ onConnect, onData }) =>
        Effect.sync(() => {
          client.off("connect", onConnect).off("close", onData)
          client.stream?.off("data", onData)
        })
    ),
    ({ state }) => ({
      noteSilence: (since: number) => {
        state.since = Math.min(state.since, since)
      },
      /** When to look next. */
      look: (at: number): number => {
        if (at < state.since + 2 * limit) return state.since + 2 * limit
        state.since = Infinity
        client.stream.destroy(new Error(`no data from the server for ${2 * limit} ms`))
        return Infinity
      }
    })
  )

/**
 * Fails a command without a reply within `commandTimeout`, and one whose connection is lost. A command that comes while
 * there is no connection fails at once. It never reaches the server later: its text is gone by then.
 */
export const withTimeouts = (
  client: Client | Cluster,
  commandTimeout: Duration.Duration
): Effect.Effect<CommandSink["send"], never, Scope.Scope> =>
  Effect.gen(function*() {
    const limit = Duration.toMillis(commandTimeout)
    const busy = Latch.makeUnsafe(false)
    const address = () => client instanceof Client ? addressOf(client) : "the Cluster"
    let isIdle = false
    let oldest: InFlight | undefined
    let newest: InFlight | undefined
    const wake = () => {
      if (!isIdle) return
      isIdle = false
      busy.openUnsafe()
    }
    // ioredis watches the silence of a node of a Cluster
    const silence = client instanceof Client ? yield* watchSilence(client, limit, wake) : undefined

    const forget = (entry: InFlight) => {
      entry.isSettled = true
      // ioredis may keep the command for long, and its arguments are most of its memory
      entry.command.args = []
      while (oldest?.isSettled === true) {
        const { next } = oldest
        // An old entry would keep all later ones from being collected while young
        oldest.next = undefined
        oldest = next
      }
      if (oldest === undefined) newest = undefined
    }

    const reject = (entry: InFlight, cause: Error) => {
      forget(entry)
      entry.command.reject(cause)
    }

    // A client of the user's may be set to send these again
    const onClose = () => {
      const cause = causes.lost(address())
      while (oldest !== undefined) reject(oldest, cause)
    }
    if (client instanceof Client) {
      yield* Effect.acquireRelease(
        Effect.sync(() => client.on("close", onClose)),
        () => Effect.sync(() => client.off("close", onClose))
      )
    }

    const watch = Effect.suspend(() => {
      busy.closeUnsafe()
      const at = monotonicMillis()
      while (oldest !== undefined && at >= oldest.sent + limit) {
        silence?.noteSilence(oldest.sent)
        reject(oldest, causes.timedOut(Duration.format(commandTimeout), address()))
      }
      const next = Math.min(oldest === undefined ? Infinity : oldest.sent + limit, silence?.look(at) ?? Infinity)
      if (next < Infinity) return Effect.sleep(Duration.millis(Math.max(1, Math.ceil(next - at))))
      isIdle = true
      return busy.await
    })
    yield* Effect.forkScoped(Effect.forever(watch))

    return (name, args, done) => {
      if (client.status !== "ready") {
        queueMicrotask(() => done({ cause: causes.notConnected(address()) }, undefined))
        return undefined
      }
      let command: UntimedCommand
      try {
        command = new UntimedCommand(name, args)
      } catch (cause) {
        queueMicrotask(() => done({ cause: causes.unwritable(cause) }, undefined))
        return undefined
      }
      const entry: InFlight = { command, sent: monotonicMillis(), isSettled: false, next: undefined }
      if (newest === undefined) oldest = entry
      else newest.next = entry
      newest = entry
      wake()
      command.promise.then(
        (reply) => {
          forget(entry)
          done(undefined, reply)
        },
        (cause: unknown) => {
          forget(entry)
          done({ cause: causes.ofCommand(cause, address()) }, undefined)
        }
      )
      try {
        client.sendCommand(command)
      } catch (cause) {
        reject(entry, causes.unwritable(cause))
      }
      return undefined
    }
  })
