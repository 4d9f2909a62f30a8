/** Times out the commands of a connection with one timer, where ioredis sets two timers for each command. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { Command, type Redis as Client } from "ioredis"
import type { CommandSink } from "../commandSink.ts"

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

/**
 * A command without a reply within `commandTimeout` fails. A connection on which nothing arrives for twice that time is
 * replaced, also if it was only just opened.
 */
export const withTimeouts = (
  client: Client,
  commandTimeout: Duration.Duration
): Effect.Effect<CommandSink["send"], never, Scope.Scope> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const limit = Duration.toMillis(commandTimeout)
    const busy = Latch.makeUnsafe(false)
    let isIdle = false
    let oldest: InFlight | undefined
    let newest: InFlight | undefined
    /** Since when the server has been silent: from a command without a reply, or from the opening of the connection. */
    let silentSince = Infinity
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

    const wake = () => {
      if (!isIdle) return
      isIdle = false
      busy.openUnsafe()
    }
    const onData = () => {
      silentSince = Infinity
    }
    const onConnect = () => {
      silentSince = now()
      client.stream.on("data", onData)
      wake()
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        client.on("connect", onConnect).on("close", onData)
        client.stream.on("data", onData)
      }),
      () => Effect.sync(() => client.off("connect", onConnect).off("close", onData))
    )

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

    const watch = Effect.suspend(() => {
      busy.closeUnsafe()
      const at = now()
      while (oldest !== undefined && at >= oldest.sent + limit) {
        const { command, sent } = oldest
        silentSince = Math.min(silentSince, sent)
        forget(oldest)
        command.reject(new Error("Command timed out"))
      }
      if (at >= silentSince + 2 * limit) {
        onData()
        client.stream.destroy(new Error(`no data from the server for ${2 * limit} ms`))
      }
      const next = Math.min(oldest === undefined ? Infinity : oldest.sent + limit, silentSince + 2 * limit)
      if (next < Infinity) return Effect.sleep(Duration.millis(Math.max(1, Math.ceil(next - at))))
      isIdle = true
      return busy.await
    })
    yield* Effect.forkScoped(Effect.forever(watch))

    return (name, args, done) => {
      const command = new UntimedCommand(name, args)
      const entry: InFlight = { command, sent: now(), isSettled: false, next: undefined }
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
          done({ cause }, undefined)
        }
      )
      client.sendCommand(command)
      return undefined
    }
  })
