/**
 * A connection of a fake client. It behaves like a connection in the ioredis layer: while it is broken, commands fail
 * immediately, and it reconnects indefinitely.
 */
import { type Push, type Reply, ReplyError } from "@effect-simba/fake-redis/Engine"
import * as Effect from "effect/Effect"
import type { Host } from "../simulation/host.ts"
import type { Timer } from "../simulation/timers.ts"
import * as Redis from "./effectRedis.ts"
import type { Wire } from "./link.ts"
import { inResp3 } from "./replyShapes.ts"
import type { FakeServer, Role } from "./server.ts"

export interface Settings {
  readonly server: FakeServer
  readonly host: Host
  readonly client: string
  readonly db: number
  readonly protocol: 2 | 3
  readonly commandTimeoutMillis: number
  readonly connectTimeout: number
}

interface Pending {
  readonly fail: (cause: Error) => void
  readonly sentAt: number
  timer: Timer | undefined
}

/** Backoff: 50 ms, doubling up to a second, with a jitter of 20 percent. */
const reconnectDelay = (attempt: number, random: () => number) =>
  Math.min(50 * 2 ** Math.min(attempt - 1, 5), 1000) * (0.8 + 0.4 * random())

const timedOut = () => new Error("Command timed out")
const closed = () => new Error("Connection is closed.")

export class Connection {
  state: "connecting" | "ready" | "waiting" | "closed" = "closed"
  onReady: (() => void) | undefined
  onPush: ((push: Push) => void) | undefined
  private readonly settings: Settings
  private readonly role: Role
  private wire: Wire<Reply> | undefined
  private readonly pending = new Set<Pending>()
  private lastHeard = 0
  private failures = 0
  /** The number of the current connection attempt. Messages from earlier connections are dropped. */
  private attempts = 0
  private timer: Timer | undefined
  private silence: Timer | undefined

  constructor(settings: Settings, role: Role) {
    this.settings = settings
    this.role = role
  }

  connect(): void {
    const { client, connectTimeout, db, host, server } = this.settings
    this.state = "connecting"
    const attempt = ++this.attempts
    const mine = () => this.attempts === attempt
    // Without faults, the connection opens before `wire` is assigned
    let held = false
    let openedAlready = false
    const opened = () => {
      if (this.state !== "connecting") return
      this.timer?.cancel()
      this.timer = undefined
      this.state = "ready"
      this.failures = 0
      this.lastHeard = host.timers.now()
      this.onReady?.()
    }
    this.wire = server.link(client).connect<Reply, Push>((end) => server.accept(client, this.role, db, end), {
      opened: () => {
        if (held) host.deliver(() => mine() && opened())
        else openedAlready = true
      },
      pushed: (push) => host.deliver(() => mine() && this.onPush?.(push)),
      broken: () => host.deliver(() => mine() && this.broken())
    })
    held = true
    if (openedAlready) return opened()
    this.timer = host.timers.at(host.timers.now() + connectTimeout, () => {
      this.timer = undefined
      if (this.state === "connecting") this.replace()
    })
  }

  /** Drops the connection, and opens a new one. */
  replace(): void {
    this.wire?.abandon()
    this.broken()
  }

  private broken(): void {
    if (this.state === "closed") return
    const { host } = this.settings
    this.attempts++
    this.wire = undefined
    this.timer?.cancel()
    if (this.role === "reserved") {
      this.state = "closed"
    } else {
      this.state = "waiting"
      const delay = reconnectDelay(++this.failures, host.random)
      this.timer = host.timers.at(host.timers.now() + delay, () => this.connect())
    }
    this.failPending()
  }

  private failPending(): void {
    const pending = [...this.pending]
    this.pending.clear()
    this.silence?.cancel()
    this.silence = undefined
    for (const command of pending) command.fail(closed())
  }

  close(): void {
    const { wire } = this
    this.state = "closed"
    this.attempts++
    this.wire = undefined
    this.timer?.cancel()
    wire?.close()
    this.failPending()
  }

  /** Detects a half-open connection, where an expected reply never arrives. */
  private watchSilence(): void {
    if (this.silence !== undefined || this.role === "reserved") return
    const { commandTimeoutMillis, host } = this.settings
    const oldest = this.pending.values().next().value
    if (oldest === undefined) return
    const until = Math.max(oldest.sentAt, this.lastHeard) + 2 * commandTimeoutMillis
    this.silence = host.timers.at(until, () => {
      this.silence = undefined
      const first = this.pending.values().next().value
      if (first === undefined || this.state !== "ready") return
      if (host.timers.now() >= Math.max(first.sentAt, this.lastHeard) + 2 * commandTimeoutMillis - 1e-3) this.replace()
      else this.watchSilence()
    })
  }

  readonly send = <A = unknown>(command: string, ...args: ReadonlyArray<string>): Effect.Effect<A, Redis.RedisError> =>
    Effect.callback<A, Redis.RedisError>((resume) => {
      const { client, commandTimeoutMillis, host, protocol, server } = this.settings
      const fail = (cause: Error) => resume(Effect.fail(new Redis.RedisError({ cause })))
      const { wire } = this
      if (wire === undefined || this.state !== "ready") {
        return fail(new Error("Stream isn't writeable and enableOfflineQueue options is false"))
      }
      if (this.role === "commands" && server.link(client).hangs([command, ...args])) {
        return wire.send([command, ...args], () => {})
      }
      let hasReplied = false
      const pending: Pending = {
        sentAt: host.timers.now(),
        timer: undefined,
        fail: (cause) => {
          pending.timer?.cancel()
          fail(cause)
        }
      }
      const deliver = (reply: Reply) => {
        hasReplied = true
        this.lastHeard = host.timers.now()
        this.pending.delete(pending)
        if (this.pending.size === 0) {
          this.silence?.cancel()
          this.silence = undefined
        }
        pending.timer?.cancel()
        if (!(reply instanceof ReplyError)) {
          return resume(Effect.succeed((protocol === 2 ? reply : inResp3(command, args, reply)) as A))
        }
        // Reconnect, because after a failover the old primary is a replica
        if (reply.message.startsWith("READONLY") && this.wire === wire) this.replace()
        fail(reply)
      }
      let sent = false
      wire.send([command, ...args], (reply) => {
        if (sent) host.deliver(() => this.wire === wire && deliver(reply))
        else deliver(reply)
      })
      sent = true
      if (hasReplied) return
      if (this.wire !== wire) return fail(closed())
      this.pending.add(pending)
      if (this.role === "reserved") return
      pending.timer = host.timers.at(host.timers.now() + commandTimeoutMillis, () => fail(timedOut()))
      this.watchSilence()
      return Effect.sync(() => pending.timer?.cancel())
    })
}
