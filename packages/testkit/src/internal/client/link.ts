/**
 * The network between one client and the server. Each connection consists of two pipes that keep their messages in
 * order, as TCP does. Messages on different connections may overtake each other. Without faults there are no delays:
 * the reply arrives before `send` returns, and no fibers or timers are needed.
 */
import type { Prng, Range } from "../simulation/prng.ts"
import { type Timer, type Timers, tolerance } from "../simulation/timers.ts"

export type Direction = "requests" | "replies"

export interface LinkFaults {
  /** Delays of requests, replies and published messages, in milliseconds. */
  readonly requestDelay?: Range | undefined
  readonly replyDelay?: Range | undefined
  readonly messageDelay?: Range | undefined
  /** The probabilities that a request or a reply never arrives. If only the reply is lost, the command was executed. */
  readonly loseRequest?: number | undefined
  readonly loseReply?: number | undefined
  /**
   * The probability, per command, that it runs, but its reply does not arrive and it does not time out. The sender
   * waits for at most `lasts`.
   */
  readonly hang?: { readonly chance: number; readonly lasts: number } | undefined
  /** The probability, per request, that the connection breaks right after the request is sent. */
  readonly reset?: number | undefined
  /** The extra delay, in milliseconds, of requests that were in flight when the connection broke but still arrive. */
  readonly straggle?: Range | undefined
  /**
   * The probability, per published message, that it takes `by` milliseconds longer, and so is overtaken by later
   * messages.
   */
  readonly lateMessage?: { readonly chance: number; readonly by: Range } | undefined
}

/**
 * What happens to a request, reply or message: it is delayed by some milliseconds or lost, or the connection breaks.
 */
export type Fate = number | "lost" | "cut"

const none: Range = [0, 0]

interface Parcel {
  at: number
  readonly run: () => void
}

export class Pipe {
  private readonly timers: Timers
  private queue: Array<Parcel> = []
  private last = -Infinity
  private timer: Timer | undefined
  private held: boolean

  constructor(timers: Timers, held: boolean) {
    this.timers = timers
    this.held = held
  }

  push(run: () => void, delay: number): void {
    if (delay <= 0 && this.last === -Infinity && !this.held) return run()
    const now = this.timers.now()
    const at = Math.max(now + delay, this.last)
    if (this.queue.length === 0 && at <= now && !this.held) return run()
    this.last = at
    this.queue.push({ at, run })
    if (this.queue.length === 1) this.arm()
  }

  hold(held: boolean): void {
    this.held = held
    if (!held) this.drain()
  }

  /** Breaks the connection. The first `keep` in-flight requests still arrive, delayed by `later` milliseconds. */
  sever(keep: number, later: number): void {
    this.queue.length = Math.min(this.queue.length, keep)
    for (const parcel of this.queue) parcel.at += later
    this.last = this.queue.length === 0 ? -Infinity : this.queue[this.queue.length - 1]!.at
    this.timer?.cancel()
    this.arm()
  }

  get length(): number {
    return this.queue.length
  }

  private arm(): void {
    if (this.held || this.queue.length === 0) return
    this.timer = this.timers.at(this.queue[0]!.at, () => this.drain())
  }

  private drain(): void {
    this.timer?.cancel()
    while (!this.held && this.queue.length > 0 && this.queue[0]!.at <= this.timers.now() + tolerance) {
      this.queue.shift()!.run()
    }
    this.arm()
  }
}

/** What a connection needs from the server. */
export interface ServerSide<Reply> {
  readonly execute: (args: ReadonlyArray<string>, reply: (reply: Reply) => void) => void
  readonly close: () => void
}

export interface ClientSide<Push> {
  readonly opened: () => void
  readonly pushed: (push: Push) => void
  readonly broken: () => void
}

/** The client's end of a connection. */
export interface Wire<Reply> {
  readonly send: (args: ReadonlyArray<string>, reply: (reply: Reply) => void) => void
  /** Closes the connection gracefully. Messages that were sent earlier still arrive. */
  readonly close: () => void
  /** Drops the connection. In-flight requests may arrive late or never, and replies never arrive. */
  readonly abandon: () => void
}

export interface LinkEvent {
  readonly link: string
  readonly what: "lost request" | "lost reply" | "hung" | "late message" | "reset" | "refused"
  readonly args?: ReadonlyArray<string>
  /** How late the message is, or how long the command's sender waits, in milliseconds. */
  readonly lasts?: number
}

/** A message on a link. */
export type Cargo =
  | { readonly kind: "request"; readonly args: ReadonlyArray<string> }
  | { readonly kind: "reply"; readonly args: ReadonlyArray<string>; readonly reply: unknown }
  | { readonly kind: "message"; readonly push: unknown }

/** The operations that a link performs on each of its connections. */
interface Breakable {
  readonly isOpen: boolean
  readonly pipe: (direction: Direction) => Pipe
  readonly reset: () => void
  readonly abandon: () => void
}

export class Link {
  readonly name: string
  faults: LinkFaults = {}
  /** Decides each message's fate, in addition to `faults`. */
  fate: ((what: "request" | "reply" | "message", args: ReadonlyArray<string>) => Fate) | undefined
  /** Whether published messages are dropped although connections stay open. */
  isDeaf = false
  onEvent: ((event: LinkEvent) => void) | undefined
  /** Called when something is sent. If it returns a function, that function is called on arrival. */
  onSend: ((cargo: Cargo) => () => void) | undefined
  private readonly timers: Timers
  private readonly prng: Prng
  private readonly holds: Record<Direction, number> = { requests: 0, replies: 0 }
  private readonly connections = new Set<Breakable>()
  private readonly holdListeners = new Set<() => void>()

  constructor(name: string, timers: Timers, prng: Prng) {
    this.name = name
    this.timers = timers
    this.prng = prng
  }

  isHeld(direction: Direction): boolean {
    return this.holds[direction] > 0
  }

  /** Holds are counted: two holds need two releases. */
  hold(direction: Direction): void {
    if (this.holds[direction]++ > 0) return
    for (const connection of [...this.connections]) connection.pipe(direction).hold(true)
    for (const listener of [...this.holdListeners]) listener()
  }

  release(direction: Direction): void {
    if (this.holds[direction] === 0 || --this.holds[direction] > 0) return
    for (const connection of [...this.connections]) connection.pipe(direction).hold(false)
  }

  onHold(listener: () => void): () => void {
    this.holdListeners.add(listener)
    return () => this.holdListeners.delete(listener)
  }

  /** Draws whether a command hangs. If it does, its reply never arrives or, on a socket, arrives late. */
  hangs(args: ReadonlyArray<string>): boolean {
    const { hang } = this.faults
    if (hang === undefined || !this.prng.chance(hang.chance)) return false
    this.onEvent?.({ link: this.name, what: "hung", args, lasts: hang.lasts })
    return true
  }

  /** Breaks all connections on both ends. */
  reset(): void {
    for (const connection of [...this.connections]) connection.reset()
  }

  /** Cuts a dead client's connections. Only in-flight requests may still arrive. */
  cut(): void {
    for (const connection of [...this.connections]) connection.abandon()
  }

  /** The number of the client's connections that are open or opening. */
  get size(): number {
    let size = 0
    for (const connection of this.connections) if (connection.isOpen) size++
    return size
  }

  /**
   * Opens a connection. With `isStream` it carries a byte stream, which cannot skip a request or a reply. If one is
   * lost, the connection breaks. If a command hangs, its reply and all later replies are delayed.
   */
  connect<Reply, Push>(
    open: (wire: ConnectionEnd<Push>) => ServerSide<Reply>,
    client: ClientSide<Push>,
    isStream = false
  ): Wire<Reply> {
    const connection = new Connection<Reply, Push>(this, this.timers, this.prng, open, client, isStream)
    this.connections.add(connection)
    connection.open()
    return connection
  }

  forget(connection: Breakable): void {
    this.connections.delete(connection)
  }
}

/** The server's handle on the client, which receives everything except replies. */
export interface ConnectionEnd<Push> {
  readonly push: (push: Push) => void
  readonly closed: () => void
}

class Connection<Reply, Push> implements Wire<Reply>, ConnectionEnd<Push> {
  private readonly link: Link
  private readonly isStream: boolean
  private readonly timers: Timers
  private readonly prng: Prng
  private readonly client: ClientSide<Push>
  private readonly accept: (wire: ConnectionEnd<Push>) => ServerSide<Reply>
  private readonly requests: Pipe
  private readonly replies: Pipe
  private server: ServerSide<Reply> | undefined
  /** Whether the connection is open from the client's point of view. */
  isOpen = true

  constructor(
    link: Link,
    timers: Timers,
    prng: Prng,
    accept: (wire: ConnectionEnd<Push>) => ServerSide<Reply>,
    client: ClientSide<Push>,
    isStream: boolean
  ) {
    this.link = link
    this.isStream = isStream
    this.timers = timers
    this.prng = prng
    this.accept = accept
    this.client = client
    this.requests = new Pipe(timers, link.isHeld("requests"))
    this.replies = new Pipe(timers, link.isHeld("replies"))
  }

  pipe(direction: Direction): Pipe {
    return direction === "requests" ? this.requests : this.replies
  }

  private delay(range: Range | undefined): number {
    return this.prng.between(range ?? none)
  }

  private back(run: () => void, delay: number): void {
    if (!this.isOpen) return
    this.replies.push(() => {
      if (this.isOpen) run()
    }, delay)
  }

  open(): void {
    this.requests.push(() => {
      this.server = this.accept(this)
      this.back(this.client.opened, this.delay(this.link.faults.replyDelay))
    }, this.delay(this.link.faults.requestDelay))
  }

  send(args: ReadonlyArray<string>, reply: (reply: Reply) => void): void {
    const { link, prng } = this
    const { faults } = link
    const arrived = link.onSend?.({ kind: "request", args })
    const fate = link.fate?.("request", args) ?? 0
    if (fate === "cut") return this.reset()
    if (fate === "lost" || prng.chance(faults.loseRequest ?? 0)) {
      link.onEvent?.({ link: link.name, what: "lost request", args })
      if (this.isStream) this.reset()
      return
    }
    this.requests.push(() => {
      arrived?.()
      this.server?.execute(args, (result) => {
        if (!this.isOpen) return
        const returned = link.onSend?.({ kind: "reply", args, reply: result })
        const fate = link.fate?.("reply", args) ?? 0
        if (fate === "cut") return this.reset()
        if (fate === "lost" || prng.chance(link.faults.loseReply ?? 0)) {
          link.onEvent?.({ link: link.name, what: "lost reply", args })
          if (this.isStream) this.reset()
          return
        }
        const { hang, replyDelay } = link.faults
        const silence = this.isStream && hang !== undefined && link.hangs(args) ? hang.lasts : 0
        this.back(() => {
          returned?.()
          reply(result)
        }, silence + this.delay(replyDelay) + fate)
      })
    }, this.delay(faults.requestDelay) + fate)
    if (prng.chance(faults.reset ?? 0)) this.reset()
  }

  push(push: Push): void {
    const { faults, isDeaf } = this.link
    if (isDeaf) return
    const arrived = this.link.onSend?.({ kind: "message", push })
    const deliver = () => {
      arrived?.()
      this.client.pushed(push)
    }
    const fate = this.link.fate?.("message", []) ?? 0
    if (fate === "lost") return
    if (fate === "cut") return this.reset()
    if (faults.lateMessage !== undefined && this.prng.chance(faults.lateMessage.chance)) {
      const lasts = this.delay(faults.lateMessage.by)
      this.link.onEvent?.({ link: this.link.name, what: "late message", lasts })
      return void this.timers.at(this.timers.now() + lasts, () => {
        if (this.isOpen) deliver()
      })
    }
    this.back(deliver, this.delay(faults.messageDelay ?? faults.replyDelay) + fate)
  }

  /** Called when the server has dropped the connection. */
  closed(): void {
    this.server = undefined
    this.back(() => this.end(), this.delay(this.link.faults.replyDelay))
  }

  private end(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.link.forget(this)
    this.client.broken()
  }

  reset(): void {
    if (!this.isOpen) return
    this.link.onEvent?.({ link: this.link.name, what: "reset" })
    this.abandon()
    this.client.broken()
  }

  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.leave(0)
  }

  abandon(): void {
    if (!this.isOpen) return
    this.isOpen = false
    const { length } = this.requests
    const later = this.delay(this.link.faults.straggle)
    if (length > 0) this.requests.sever(this.prng.int(length + 1), later)
    this.leave(later)
  }

  /** Notifies the server that the connection is closed, once all remaining requests have arrived. */
  private leave(later: number): void {
    this.requests.push(() => {
      this.link.forget(this)
      this.server?.close()
      this.server = undefined
    }, later + this.delay(this.link.faults.requestDelay))
  }
}
