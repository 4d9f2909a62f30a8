/**
 * Times out the commands on a connection with a single timer. ioredis would set two timers per command. The drivers
 * wrap the command connection with this module. It uses real time, because `IoRedis` runs the drivers with
 * `onWallClock`.
 */
import { socketsRead } from "@effect-simba/core/MutexStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { type Cluster, Command, type Redis as Client } from "ioredis"
import type { Socket } from "node:net"
import type { Args, CommandSink } from "../commandSink.ts"
import * as causes from "./causes.ts"
import { addressOf, isCluster } from "./connection.ts"
import { listen } from "./listeners.ts"
import { monotonicMillis } from "./wallClock.ts"

const heads = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`)
const headOf = (text: string) => heads[text.length] ?? `\r\n$${text.length}\r\n`

/** Commands with repeated arguments, by the function that returns those. */
const encoded = new WeakMap<Args, Buffer>()

/**
 * A command without ioredis's timers. It encodes repeated arguments only once, and ASCII arguments faster than ioredis
 * does, because their byte length equals their string length.
 */
class UntimedCommand extends Command {
  /** When the command times out, in monotonic milliseconds like all instants in this file. */
  readonly due: number
  isDone = false
  /** The next command that was sent. */
  next: UntimedCommand | undefined

  /** The function that returns repeated arguments, until the command has ended. */
  repeated: Args | undefined

  constructor(name: string, source: Args, limit: number) {
    const isRepeated = typeof source === "function"
    const args = !isRepeated ? source : encoded.has(source) ? [] : source()
    // A list of strings does not have to be copied. JavaScript callers may pass other values, which ioredis converts
    let isPlain = true
    for (const arg of args) isPlain &&= typeof arg === "string"
    super(name, isPlain ? [] : [...args], { replyEncoding: "utf8" })
    if (isPlain) this.args = args as Array<string>
    this.due = monotonicMillis() + limit
    this.repeated = isRepeated ? source : undefined
  }

  override setTimeout(): void {}

  override toWritable(socket: object): string | Buffer {
    const { repeated } = this
    if (repeated === undefined) return this.encode(socket)
    const known = encoded.get(repeated) ?? Buffer.from(this.encode(socket))
    encoded.set(repeated, known)
    return known
  }

  private encode(socket: object): string | Buffer {
    const { args, name } = this
    let text = `*${args.length + 1}${headOf(name)}${name}`
    for (const arg of args) {
      if (typeof arg !== "string") return super.toWritable(socket)
      text += headOf(arg)
      text += arg
    }
    text += "\r\n"
    return Buffer.byteLength(text) === text.length ? text : super.toWritable(socket)
  }
}

export const isOwn = (command: object): boolean => command instanceof UntimedCommand

/**
 * Destroys a connection if a reply is due and nothing arrives for twice the timeout. Before the connection is ready,
 * this library has not sent any commands that could time out, so each reply to the handshake restarts the timeout.
 */
const watchSilence = Effect.fnUntraced(function*(client: Client, limit: number, wake: () => void) {
  let since = Infinity
  let lastData = 0
  const onData = () => {
    lastData = monotonicMillis()
    since = client.status === "connect" ? lastData : Infinity
  }
  client.stream.on("data", onData)
  yield* Effect.addFinalizer(() => Effect.sync(() => client.stream?.off("data", onData)))
  yield* listen(client, {
    connect: () => {
      since = monotonicMillis()
      client.stream.on("data", onData)
      wake()
    },
    ready: onData,
    close: onData
  })
  return {
    noteSilence: (from: number) => {
      since = Math.min(since, Math.max(from, lastData))
    },
    /** The instant from which the connection counts as silent for too long. */
    due: () => since + 2 * limit,
    end: () => {
      // While the server loads its data, ioredis pauses between requests
      if (client.commandQueue.length === 0) return onData()
      since = Infinity
      client.stream.destroy(new Error(`no data from the server for ${2 * limit} ms`))
    }
  }
})

/**
 * Returns a function that destroys each of a Cluster client's connections on which a reply to this library, or to the
 * handshake, is overdue and then no data arrives for at least another timeout. Late replies keep a connection open.
 */
const endSilentNodes = (cluster: Cluster, limit: number) => {
  const silent = new WeakMap<object, { readonly bytesRead: number; readonly since: number }>()
  return (at: number) => {
    for (const { commandQueue, status, stream } of cluster.nodes("all")) {
      const command = commandQueue.peekFront()?.command
      const isOverdue = command instanceof UntimedCommand && at >= command.due
      if (!isOverdue && (command === undefined || status !== "connect")) continue
      const { bytesRead } = stream as Socket
      const known = silent.get(stream)
      if (known?.bytesRead !== bytesRead) silent.set(stream, { bytesRead, since: isOverdue ? at - limit : at })
      else if (at >= known.since + 2 * limit) stream.destroy(new Error(`no data from the node for ${limit} ms`))
    }
  }
}

/**
 * Fails a command if its reply does not arrive within `commandTimeout` or if its connection is lost. Without a
 * connection, a command fails immediately. If ioredis resends a failed command, it sends a PING instead. A client that
 * never reconnects keeps a silent connection.
 */
export const withTimeouts = (
  client: Client | Cluster,
  commandTimeout: Duration.Duration,
  reconnects = true
): Effect.Effect<CommandSink["Service"]["send"], never, Scope.Scope> =>
  Effect.gen(function*() {
    const limit = Duration.toMillis(commandTimeout)
    const busy = Latch.makeUnsafe(false)
    // Use a linked list, because a Set is 25 % slower with thousands of commands
    let oldest: UntimedCommand | undefined
    let newest: UntimedCommand | undefined
    const wake = () => busy.openUnsafe()
    const silence = isCluster(client) || !reconnects ? undefined : yield* watchSilence(client, limit, wake)
    const endSilent = isCluster(client) ? endSilentNodes(client, limit) : undefined

    const forget = (command: UntimedCommand) => {
      command.isDone = true
      // ioredis may keep the command for a long time, so free its arguments, which use most of the memory. ioredis may
      // even resend it, so replace the name, because commands such as FLUSHALL need no arguments
      command.name = "ping"
      command.args = []
      command.repeated = undefined
      while (oldest?.isDone === true) {
        const { next }: UntimedCommand = oldest
        // Unlink it: a finished command in the heap's old generation would keep all later commands alive
        oldest.next = undefined
        oldest = next
      }
      if (oldest === undefined) newest = undefined
    }

    const reject = (command: UntimedCommand, cause: Error) => {
      forget(command)
      command.reject(cause)
    }

    if (!isCluster(client)) {
      yield* listen(client, {
        // Reject the in-flight commands, because the application's client may be configured to resend them. On a
        // Cluster, `rejectUnanswered` in `connection` does this
        close: () => {
          const cause = causes.lost(addressOf(client))
          while (oldest !== undefined) reject(oldest, cause)
        }
      })
    }

    /** Times out only commands that were already overdue before the sockets were read. */
    const endOverdue = (at: number) => {
      while (oldest !== undefined && at >= oldest.due) {
        silence?.noteSilence(oldest.due - limit)
        reject(oldest, causes.timedOut(Duration.format(commandTimeout), addressOf(client)))
      }
      if (silence !== undefined && at >= silence.due()) silence.end()
      endSilent?.(at)
    }

    const watch = Effect.suspend(() => {
      busy.closeUnsafe()
      const at = monotonicMillis()
      const next = Math.min(oldest?.due ?? Infinity, silence?.due() ?? Infinity)
      if (next === Infinity) return busy.await
      return next > at
        ? Effect.sleep(Duration.millis(Math.max(1, Math.ceil(next - at))))
        : Effect.andThen(socketsRead, Effect.sync(() => endOverdue(at)))
    })
    yield* Effect.forkScoped(Effect.forever(watch))

    return (name, args, done) => {
      const fail = (cause: unknown) => queueMicrotask(() => done({ cause }, undefined))
      if (client.status === "end") return void fail(causes.closed(addressOf(client)))
      if (client.status !== "ready") return void fail(causes.notConnected(addressOf(client)))
      let command: UntimedCommand
      try {
        command = new UntimedCommand(name, args, limit)
      } catch (cause) {
        return void fail(causes.unwritable(cause))
      }
      if (newest === undefined) oldest = command
      else newest.next = command
      newest = command
      wake()
      command.promise.then(
        (reply) => {
          forget(command)
          done(undefined, reply)
        },
        (cause: unknown) => {
          forget(command)
          done({ cause: causes.ofCommand(cause, addressOf(client)) }, undefined)
        }
      )
      try {
        client.sendCommand(command)
      } catch (cause) {
        reject(command, causes.unwritable(cause))
      }
      return undefined
    }
  })
