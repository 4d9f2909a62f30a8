/**
 * A deterministic in-memory Redis 7.0. Its caller supplies the clock, the timers and the randomness, connects clients,
 * and can inspect and break the server.
 */
import type { Client } from "./client.ts"
import { subscriptions } from "./client.ts"
import { commands } from "./commandTable.ts"
import { Config } from "./config.ts"
import { SortedSet } from "./data/sortedSet.ts"
import type { Stream } from "./data/stream.ts"
import { printId } from "./data/stream.ts"
import type { Entry, TypeName } from "./data/values.ts"
import { cloneEntry } from "./data/values.ts"
import type { EngineOptions, Trace } from "./engineOptions.ts"
import type { ErrorState } from "./errorStates.ts"
import type { Value } from "./reply.ts"
import { fromBytes, toBytes, toPush, toReply } from "./reply.ts"
import { Server } from "./server.ts"
import type { BinaryPush, Push, Session } from "./session.ts"
import { Users } from "./users.ts"

export interface KeyInfo {
  readonly db: number
  readonly key: string
  readonly type: TypeName
  /** In milliseconds since the epoch, or `undefined` if the key does not expire. */
  readonly expiresAt: number | undefined
}

export type Dump =
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "list" | "set"; readonly value: ReadonlyArray<string> }
  | { readonly type: "hash"; readonly value: ReadonlyArray<readonly [field: string, value: string]> }
  | { readonly type: "zset"; readonly value: ReadonlyArray<readonly [member: string, score: number]> }
  | { readonly type: "stream"; readonly value: ReadonlyArray<readonly [id: string, fields: ReadonlyArray<string>]> }

export interface Snapshot {
  readonly dbs: ReadonlyArray<ReadonlyMap<string, Entry>>
}

/** A session whose commands and replies are binary strings. */
export interface BinarySession extends Session<Value> {
  readonly protocol: () => 2 | 3
}

export interface ConnectOptions {
  readonly db?: number
  /** Called when the server drops the connection: CLIENT KILL, QUIT, or a restart. */
  readonly onClose?: () => void
}

export class Engine {
  private readonly server: Server

  constructor(options: EngineOptions) {
    this.server = new Server(options, commands)
  }

  /** Opens a session for a client in this process. Strings are decoded as UTF-8. */
  connect(push: (push: Push) => void, options: ConnectOptions = {}): Session {
    const send = (binary: BinaryPush) => {
      const text = toPush(binary)
      if (text !== undefined) push(text)
    }
    const session = this.open(send, options, false)
    return {
      ...session,
      execute: (args, reply) => session.execute(args.map(toBytes), (value) => reply(toReply(value)))
    }
  }

  /** Opens a session that uses binary strings. Its replies are shaped for the protocol that the client chooses. */
  connectBinary(push: (push: BinaryPush) => void, options: ConnectOptions = {}): BinarySession {
    return this.open(push, options, true)
  }

  private open(push: (push: BinaryPush) => void, options: ConnectOptions, wire: boolean): BinarySession {
    const { server } = this
    server.readTime()
    const client: Client = {
      id: server.nextClientId++,
      push,
      createdAt: server.now,
      wire,
      protocol: 2,
      replies: "on",
      tracking: undefined,
      isMonitor: false,
      db: options.db ?? 0,
      user: server.users.firstUser,
      name: "",
      libName: "",
      libVersion: "",
      lastCommand: "",
      lastAt: server.now,
      closed: false,
      channels: new Set(),
      patterns: new Set(),
      shards: new Set(),
      queue: undefined,
      queueFailed: false,
      touched: false,
      watched: [],
      blocked: undefined,
      interleaved: undefined,
      waiting: []
    }
    server.clients.set(client.id, client)
    if (options.onClose !== undefined) server.onClosed.set(client.id, options.onClose)
    return {
      id: client.id,
      protocol: () => client.protocol,
      execute: (args, reply) => server.submit(client, args, reply),
      close: () => {
        server.onClosed.delete(client.id)
        server.drop(client)
      }
    }
  }

  /**
   * Removes the keys that active expiry would have removed by now. Ends the pause and the waits that have timed out.
   */
  tick(): void {
    const { server } = this
    server.readTime()
    for (const db of server.dbs) {
      for (;;) {
        const at = db.nextActive()
        if (at === undefined || at > server.micros) break
        const key = db.takeActive()
        db.entries.get(key)!.heapAt = Infinity
        server.undo.begin()
        db.peek(key)
        server.undo.commit()
        const left = db.entries.get(key)
        // The clock was set back after the delay was drawn, so the key has not expired. Schedule it again.
        if (left !== undefined && left.activeAt !== Infinity) db.setExpiry(key, left, left.expiresAt)
      }
    }
    if (server.micros >= server.pause.deadline) server.pause.end()
    server.settle()
    for (const blocked of server.blocked.due(server.micros)) {
      if (blocked.client.blocked === blocked) server.unblock(blocked, blocked.timedOut)
    }
    server.settle()
    server.tracker.endTurn()
    server.flush()
  }

  /**
   * Whether a script has been running for so long that other clients are served. Call `step` to continue the script.
   */
  get isBusy(): boolean {
    return this.server.busy !== undefined
  }

  step(): void {
    this.server.step()
  }

  /** Runs commands that arrived together. Broadcasts of changed keys are sent after the last command. */
  turn(run: () => void): void {
    this.server.turn(run)
  }

  /** The earliest server time, in microseconds, at which `tick` has something to do. */
  nextWake(): number | undefined {
    let next = Math.min(this.server.blocked.nextDeadline() ?? Infinity, this.server.pause.deadline)
    for (const db of this.server.dbs) next = Math.min(next, db.nextActive() ?? Infinity)
    return next === Infinity ? undefined : next
  }

  /** The number of scheduled expiries, deleted keys included. */
  get scheduled(): number {
    return this.server.dbs.reduce((sum, db) => sum + db.scheduled, 0)
  }

  /** Called with every command and its reply, just before the session receives the reply. */
  set onCommand(hook: ((trace: Trace) => void) | undefined) {
    this.server.onCommand = hook
  }

  /** All keys that have not been removed yet, sorted by database and name. */
  keys(): ReadonlyArray<KeyInfo> {
    const found: Array<KeyInfo> = []
    for (const db of this.server.dbs) {
      for (const key of Array.from(db.entries.keys()).sort()) {
        const entry = db.entries.get(key)!
        found.push({
          db: db.index,
          key: fromBytes(key),
          type: entry.type,
          expiresAt: entry.expiresAt === Infinity ? undefined : entry.expiresAt
        })
      }
    }
    return found
  }

  /**
   * When a key expires, in server time in milliseconds. Infinity if it does not expire, and `undefined` if it does not
   * exist.
   */
  expiresAt(db: number, key: string): number | undefined {
    return this.server.dbs[db]?.entries.get(toBytes(key))?.expiresAt
  }

  field(db: number, key: string, field: string): string | undefined {
    const value = this.server.dbs[db]?.entries.get(toBytes(key))?.value
    const text = value instanceof Map ? value.get(toBytes(field)) : undefined
    return text === undefined ? undefined : fromBytes(text)
  }

  dump(db: number, key: string): Dump | undefined {
    const entry = this.server.dbs[db]?.entries.get(toBytes(key))
    if (entry === undefined) return undefined
    const { value } = entry
    if (typeof value === "string") return { type: "string", value: fromBytes(value) }
    if (Array.isArray(value)) return { type: "list", value: value.map(fromBytes) }
    if (value instanceof Set) return { type: "set", value: Array.from(value, fromBytes) }
    if (value instanceof Map) {
      return { type: "hash", value: Array.from(value, ([field, text]) => [fromBytes(field), fromBytes(text)]) }
    }
    if (value instanceof SortedSet) {
      return { type: "zset", value: value.order.map((item) => [fromBytes(item.member), item.score]) }
    }
    return {
      type: "stream",
      value: (value as Stream).entries.map((item) => [printId(item.id), item.fields.map(fromBytes)])
    }
  }

  /** A stream. Do not modify it. */
  stream(db: number, key: string): Stream | undefined {
    const entry = this.server.dbs[db]?.entries.get(toBytes(key))
    return entry?.type === "stream" ? entry.value as Stream : undefined
  }

  /** Expires a key, even before its deadline. Returns whether the key existed. */
  forceExpire(db: number, key: string): boolean {
    return this.change(() => {
      const space = this.server.dbs[db]!
      if (!space.entries.has(toBytes(key))) return false
      space.expire(toBytes(key))
      return true
    })
  }

  /** Evicts a key. Returns whether the key existed. */
  evict(db: number, key: string): boolean {
    return this.change(() => {
      const space = this.server.dbs[db]!
      const name = toBytes(key)
      if (!space.remove(name)) return false
      this.server.touch(space, name)
      this.server.notify(space, name, "e", "evicted")
      return true
    })
  }

  private change<A>(run: () => A): A {
    const { server } = this
    server.readTime()
    server.undo.begin()
    const result = run()
    server.undo.commit()
    server.settle()
    server.flush()
    return result
  }

  flushScripts(): void {
    this.server.scripts.clear()
  }

  /** Makes the server reject commands with an error state, except for commands that Redis serves in that state. */
  setErrorState(state: ErrorState | undefined): void {
    this.server.errorState = state
  }

  /**
   * Drops all sessions, with their subscriptions and blocked commands, and all scripts. Also drops the keys and
   * libraries unless `keepData` is true, and the settings and users unless `keepConfig` is true. Keeps statistics and
   * the ACL log.
   */
  restart(options: { readonly keepData: boolean; readonly keepConfig?: boolean }): void {
    const { server } = this
    for (const client of Array.from(server.clients.values())) server.drop(client)
    server.blocked.clear()
    server.pause.end()
    server.scripts.clear()
    if (!options.keepData) {
      for (const db of server.dbs) db.clear()
      server.libraries.clear()
    }
    server.undo.clear()
    if (options.keepConfig !== true) {
      server.config = new Config()
      server.users = new Users()
      server.flags = 0
    }
    server.errorState = undefined
    server.busy = undefined
    server.readTime()
    server.startedAt = server.now
    server.flush()
  }

  snapshot(): Snapshot {
    return {
      dbs: this.server.dbs.map((db) => new Map(Array.from(db.entries, ([key, entry]) => [key, cloneEntry(entry)])))
    }
  }

  /** Restores the data without notifying anyone, as after a failover. */
  restore(snapshot: Snapshot): void {
    this.server.dbs.forEach((db, index) => {
      db.clear()
      for (const [key, entry] of snapshot.dbs[index] ?? []) db.reinstate(key, entry)
    })
    this.server.undo.clear()
  }

  /**
   * Undoes the last `count` commands that wrote something, but at most `undoDepth`. Returns the number of undone
   * commands.
   */
  rollback(count: number): number {
    return this.server.undo.rollback(count)
  }

  /** The total number of subscriptions. */
  subscriptions(): number {
    let count = 0
    for (const client of this.server.clients.values()) count += subscriptions(client)
    return count
  }

  /** The number of open sessions, and of blocked sessions. */
  sessions(): { readonly open: number; readonly blocked: number } {
    return { open: this.server.clients.size, blocked: this.server.blocked.all.size }
  }
}
