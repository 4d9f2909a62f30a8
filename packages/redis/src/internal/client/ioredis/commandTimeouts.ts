/** Commands of one connection under one watch, instead of two timers of ioredis for each. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { Command, type Redis as Client } from "ioredis"
import type { CommandSink } from "../commandSink.ts"

const heads = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`)
const headOf = (text: string) => heads[text.length] ?? `\r\n$${text.length}\r\n`

/** Not timed by ioredis, and not measured text by text: what is ASCII throughout has as many bytes as characters. */
class WatchedCommand extends Command {
  constructor(name: string, args: ReadonlyArray<string>) {
    // Texts in one list are ready to go: ioredis would only copy them. By their types there is nothing else; ioredis makes
    // the best of what comes without types
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
  readonly command: WatchedCommand
  /** Monotonic milliseconds, as all instants here. */
  readonly sent: number
  isSettled: boolean
  next: InFlight | undefined
}

/**
 * A command that was not answered within `commandTimeout` fails; a connection on which nothing has come for twice as long,
 * or that is no more than open by then, is replaced.
 */
export const watched = (
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
    /** Since when the server owes us a word: a command had no answer in time, or the connection has been opened. */
    let silentSince = Infinity
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

    const wake = () => {
      if (!isIdle) return
      isIdle = false
      busy.openUnsafe()
    }
    const hear = () => {
      silentSince = Infinity
    }
    const onConnect = () => {
      silentSince = now()
      client.stream.on("data", hear)
      wake()
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        client.on("connect", onConnect).on("close", hear)
        client.stream.on("data", hear)
      }),
      () => Effect.sync(() => client.off("connect", onConnect).off("close", hear))
    )

    const forget = (entry: InFlight) => {
      entry.isSettled = true
      // Most of what there is to a command, and not to be kept by whatever still knows of it
      entry.command.args = []
      while (oldest?.isSettled === true) {
        const { next } = oldest
        // One that has grown old would keep all after it from being collected while young
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
        hear()
        client.stream.destroy(new Error(`the server has said nothing for ${2 * limit} ms`))
      }
      const next = Math.min(oldest === undefined ? Infinity : oldest.sent + limit, silentSince + 2 * limit)
      if (next < Infinity) return Effect.sleep(Duration.millis(Math.max(1, Math.ceil(next - at))))
      isIdle = true
      return busy.await
    })
    yield* Effect.forkScoped(Effect.forever(watch))

    return (name, args, done) => {
      const command = new WatchedCommand(name, args)
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
