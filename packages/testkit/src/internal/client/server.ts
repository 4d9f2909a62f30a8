/** The implementation of `FakeRedis`: an in-memory server with its clock, links and trace. */
import {
  Engine,
  fromBytes,
  type KeyInfo,
  type LuaVm,
  type Push,
  type Reply,
  ReplyError,
  type Session,
  toReply,
  type Trace,
  writePush,
  writeReply
} from "@effect-simba/fake-redis/Engine"
import type * as Clock from "effect/Clock"
import type { Prng } from "../simulation/prng.ts"
import type { Timer, Timers } from "../simulation/timers.ts"
import { type ConnectionEnd, Link, type LinkEvent, type ServerSide } from "./link.ts"

export interface ServerOptions {
  readonly clock: Clock.Clock
  readonly timers: Timers
  readonly prng: Prng
  readonly lua: LuaVm
  /** The offset of the server's wall clock from `clock`, in milliseconds. */
  readonly epoch: number
  readonly expiryDelay: readonly [minimum: number, maximum: number]
  readonly undoDepth: number
  readonly traceLimit: number
}

export type Role = "commands" | "subscriber" | "reserved"

/** A command as received by the server. */
export interface TraceEntry {
  readonly client: string
  readonly role: Role
  readonly args: ReadonlyArray<string>
  readonly reply: Reply
  /** Server time in microseconds since the epoch. */
  readonly micros: number
}

export class FakeServer {
  readonly engine: Engine
  readonly timers: Timers
  /** Called after each command with that command, and with `undefined` after keys have expired. */
  readonly listeners = new Set<(entry: TraceEntry | undefined) => void>()
  onLinkEvent: ((event: LinkEvent) => void) | undefined
  private readonly options: ServerOptions
  private readonly links = new Map<string, Link>()
  private readonly sessions = new Map<
    number,
    { readonly client: string; readonly role: Role }
  >()
  /** The number of subscriptions that have ended. */
  departures = 0
  private readonly listening = new Map<string, Set<number>>()
  private entries: Array<TraceEntry> = []
  private step = 0
  private last = 0
  private wake: { readonly micros: number; readonly timer: Timer } | undefined

  constructor(options: ServerOptions) {
    this.options = options
    this.timers = options.timers
    this.engine = new Engine({
      nowMicros: () => this.last = Math.max(this.micros(), this.last + 1),
      random: options.prng.stream("expiry").next,
      expiryDelayMillis: options.expiryDelay,
      lua: options.lua,
      undoDepth: options.undoDepth
    })
    this.engine.onCommand = (trace) => this.traced(trace)
  }

  /** The server's wall clock, in microseconds. */
  micros(): number {
    return Math.floor((this.options.clock.currentTimeMillisUnsafe() + this.options.epoch + this.step) * 1000)
  }

  stepClock(millis: number): void {
    this.step += millis
    // Commands never share a timestamp, but the clock may be set back
    this.last = this.micros() - 1
    this.wake?.timer.cancel()
    this.wake = undefined
    this.run(() => this.engine.tick())
  }

  link(name: string): Link {
    let link = this.links.get(name)
    if (link === undefined) {
      link = new Link(name, this.timers, this.options.prng.stream(`link ${name}`))
      link.onEvent = (event) => this.onLinkEvent?.(event)
      this.links.set(name, link)
    }
    return link
  }

  allLinks(): ReadonlyArray<Link> {
    return [...this.links.values()]
  }

  /** Opens the server's end of a connection. */
  accept(client: string, role: Role, db: number, end: ConnectionEnd<Push>): ServerSide<Reply> {
    const session = this.engine.connect((push) => end.push(push), { db, onClose: () => this.closed(session, end) })
    return this.serve(session, client, role)
  }

  /** Opens the server's end of a connection on a socket. */
  acceptSocket(client: string, end: ConnectionEnd<string>): ServerSide<string> {
    const session = this.engine.connectBinary((push) => end.push(writePush(push, session.protocol())), {
      onClose: () => this.closed(session, end)
    })
    return this.serve(
      {
        ...session,
        execute: (args, reply: (bytes: string) => void) =>
          session.execute(args, (value) => reply(writeReply(value, session.protocol())))
      },
      client,
      "commands"
    )
  }

  private closed(session: { readonly id: number }, end: { readonly closed: () => void }): void {
    this.ended(session.id)
    end.closed()
  }

  private serve<R>(session: Session<R>, client: string, role: Role): ServerSide<R> {
    this.sessions.set(session.id, { client, role })
    return {
      execute: (args, reply) => this.run(() => session.execute(args, reply)),
      close: () => {
        this.ended(session.id)
        this.run(() => session.close())
      }
    }
  }

  private ended(session: number): void {
    if (this.sessions.get(session)?.role === "subscriber") {
      this.departures++
      for (const [channel, sessions] of this.listening) {
        if (sessions.delete(session) && sessions.size === 0) this.listening.delete(channel)
      }
    }
    this.sessions.delete(session)
  }

  /** The number of connections subscribed to a channel. */
  subscribers(channel: string): number {
    return this.listening.get(channel)?.size ?? 0
  }

  private listen(session: number, args: ReadonlyArray<string>): void {
    if (args[0] === "SUBSCRIBE") {
      for (const channel of args.slice(1)) {
        const sessions = this.listening.get(channel) ?? new Set()
        this.listening.set(channel, sessions.add(session))
      }
    } else if (args[0] === "UNSUBSCRIBE") {
      this.departures++
      for (const channel of args.slice(1)) {
        const sessions = this.listening.get(channel)
        if (sessions?.delete(session) === true && sessions.size === 0) this.listening.delete(channel)
      }
    }
  }

  /** Runs code that may change the state, then sets the timer for the next expiry. */
  run<A>(change: () => A): A {
    const result = change()
    this.arm()
    return result
  }

  private arm(): void {
    const next = this.engine.nextWake()
    if (next === undefined || (this.wake !== undefined && this.wake.micros <= next)) return
    this.wake?.timer.cancel()
    const delay = Math.max(0, next - this.micros() + 1) / 1000
    this.wake = {
      micros: next,
      timer: this.timers.at(this.timers.now() + delay, () => {
        this.wake = undefined
        this.run(() => this.engine.tick())
        for (const listener of this.listeners) listener(undefined)
      })
    }
  }

  private traced(trace: Trace): void {
    const from = this.sessions.get(trace.session)
    if (from === undefined) return
    if (this.options.traceLimit === 0 && this.listeners.size === 0 && from.role !== "subscriber") return
    const entry: TraceEntry = {
      client: from.client,
      role: from.role,
      args: trace.args.map(fromBytes),
      reply: toReply(trace.reply),
      micros: trace.micros
    }
    if (from.role === "subscriber" && !(entry.reply instanceof ReplyError)) this.listen(trace.session, entry.args)
    if (this.options.traceLimit > 0) {
      this.entries.push(entry)
      if (this.entries.length > 2 * this.options.traceLimit) this.entries = this.entries.slice(-this.options.traceLimit)
    }
    for (const listener of this.listeners) listener(entry)
  }

  trace(): ReadonlyArray<TraceEntry> {
    return this.options.traceLimit === 0 ? [] : this.entries.slice(-this.options.traceLimit)
  }

  clearTrace(): void {
    this.entries = []
  }

  /** All keys except expired keys that have not been removed yet. */
  keys(): ReadonlyArray<KeyInfo> {
    const now = Math.floor(this.micros() / 1000)
    return this.engine.keys().filter((key) => key.expiresAt === undefined || now <= key.expiresAt)
  }

  openConnections(client?: string): number {
    let count = 0
    for (const session of this.sessions.values()) if (client === undefined || session.client === client) count++
    return count
  }

  /** Breaks one client's connections, or all connections, as if the network had lost their state. */
  dropConnections(client?: string): void {
    for (const link of this.links.values()) if (client === undefined || link.name === client) link.reset()
  }

  restart(keepData: boolean): void {
    this.run(() => this.engine.restart({ keepData }))
  }

  /** Fails over to a replica that is missing the last writes. Returns the number of lost writes. */
  failover(lose: number): number {
    if (lose > this.options.undoDepth) {
      throw new RangeError(`cannot lose ${lose} writes: this server remembers ${this.options.undoDepth}; see undoDepth`)
    }
    return this.run(() => {
      const lost = this.engine.rollback(lose)
      this.engine.restart({ keepData: true, keepConfig: true })
      return lost
    })
  }
}
