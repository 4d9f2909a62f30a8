/**
 * The server's state, and a command's path through the server: admission, MULTI, the command itself, then the clients
 * that it unblocked. Replies and pushes are sent only once the state is consistent, because their receivers may send
 * the next command immediately.
 */
import { AclLog } from "./aclLog.ts"
import { admit } from "./admission.ts"
import type { Blocked, Wait } from "./blockedClients.ts"
import { BlockedClients } from "./blockedClients.ts"
import type { BusyScript } from "./busyScript.ts"
import type { Client, Queued, Request } from "./client.ts"
import type { Command } from "./command.ts"
import { BLOCKED, runCommand } from "./command.ts"
import type { CommandSpec } from "./commandSpec.ts"
import { specOf } from "./commandSpec.ts"
import { Config } from "./config.ts"
import { Context } from "./context.ts"
import type { EngineOptions, Trace } from "./engineOptions.ts"
import type { ErrorState } from "./errorStates.ts"
import { defaultExpiryDelay, removalMicros } from "./expiryDelay.ts"
import { Journal } from "./journal.ts"
import type { KeyspaceHost } from "./keyspace.ts"
import { DATABASES, Keyspace } from "./keyspace.ts"
import type { Library } from "./library.ts"
import type { LuaScript } from "./lua/script.ts"
import { Paused } from "./lua/script.ts"
import { Monitors } from "./monitors.ts"
import type { EventClass } from "./notifications.ts"
import { wants, wantsKeyevent, wantsKeyspace } from "./notifications.ts"
import { Outbox } from "./outbox.ts"
import { Pause } from "./pause.ts"
import type { Value } from "./reply.ts"
import { Confirmations, Fail, QUEUED } from "./reply.ts"
import type { BinaryPush } from "./session.ts"
import { shape } from "./shapes.ts"
import { Statistics } from "./statistics.ts"
import { Subscribers } from "./subscribers.ts"
import { isReader, Tracker } from "./tracker.ts"
import { Users } from "./users.ts"
import { leaveMulti, touchWatchers, unwatchAll } from "./watches.ts"

export class Server implements KeyspaceHost {
  readonly options: EngineOptions
  readonly commands: ReadonlyMap<string, Command>
  readonly dbs: Array<Keyspace>
  readonly clients = new Map<number, Client>()
  readonly blocked = new BlockedClients()
  readonly pause = new Pause<Client>()
  readonly scripts = new Map<string, LuaScript>()
  readonly libraries = new Map<string, Library>()
  readonly subscribers = new Subscribers((client, push) => this.push(client, push))
  readonly watchers = new Map<string, Set<Client>>()
  readonly tracker = new Tracker(this.clients, (client, push) => this.push(client, push))
  /** The client whose command is running. */
  running: Client | undefined
  readonly onClosed = new Map<number, () => void>()
  readonly undo: Journal
  config = new Config()
  users = new Users()
  readonly aclLog = new AclLog()
  readonly statistics = new Statistics()
  readonly monitors = new Monitors()
  flags = 0
  now = 0
  micros = 0
  errorState: ErrorState | undefined
  busy: BusyScript | undefined
  onCommand: ((trace: Trace) => void) | undefined
  nextClientId = 1
  commandsProcessed = 0
  expiredKeys = 0
  startedAt: number
  private readonly outbox = new Outbox()
  private turns = 0
  /** The running command, or the script that runs it. Its keys are tracked. */
  private outer: Pick<Queued, "args" | "spec"> = { spec: specOf("ping")!, args: [] }
  /** The clients to drop after the reply to the running command. */
  private readonly leaving: Array<Client> = []
  /** The clients that may run the commands that they sent while they were blocked. */
  private readonly unblocked: Array<Client> = []

  constructor(options: EngineOptions, commands: ReadonlyMap<string, Command>) {
    this.options = options
    this.commands = commands
    this.undo = new Journal(options.undoDepth ?? 0)
    this.dbs = Array.from({ length: DATABASES }, (_, index) => new Keyspace(this, index))
    this.readTime()
    this.startedAt = this.now
  }

  readTime(): void {
    this.micros = this.options.nowMicros()
    this.now = Math.floor(this.micros / 1000)
  }

  drawActive(deadline: number): number {
    return removalMicros(deadline, this.options.expiryDelayMillis ?? defaultExpiryDelay, this.options)
  }

  journal(db: Keyspace, key: string): void {
    this.undo.record(db, key)
  }

  expired(db: Keyspace, key: string): void {
    this.expiredKeys++
    this.notify(db, key, "x", "expired")
    this.touch(db, key, true)
  }

  missed(db: Keyspace, key: string): void {
    this.notify(db, key, "m", "keymiss")
  }

  created(db: Keyspace, key: string): void {
    this.blocked.mark(db, key)
    this.notify(db, key, "n", "new")
  }

  removed(db: Keyspace, key: string): void {
    this.blocked.mark(db, key)
  }

  touch(db: Keyspace, key: string, byExpiry = false): void {
    touchWatchers(this, db.index, key, byExpiry)
    this.tracker.changed(key, this.running)
  }

  notify(db: Keyspace, key: string, kind: EventClass, event: string): void {
    if (!wants(this.flags, kind)) return
    if (wantsKeyspace(this.flags)) this.subscribers.publish(`__keyspace@${db.index}__:${key}`, event)
    if (wantsKeyevent(this.flags)) this.subscribers.publish(`__keyevent@${db.index}__:${event}`, key)
  }

  push(client: Client, push: BinaryPush): void {
    if (client.interleaved === undefined) this.outbox.push(() => client.closed ? undefined : client.push(push))
    else client.interleaved.push(push)
  }

  flush(): void {
    this.outbox.flush()
  }

  /** Accepts a command from a session. */
  submit(client: Client, args: ReadonlyArray<string>, reply: (reply: Value) => void): void {
    if (client.closed || args.length === 0) return
    const micros = this.options.nowMicros()
    const request: Request = {
      args,
      reply: (value) => {
        if (value instanceof Fail) this.statistics.failed(value)
        const shaped = client.wire ? shape(client.protocol, args, value) : value
        // Subscription confirmations are sent even after CLIENT REPLY OFF
        const isHeard = client.replies === "on" || !client.wire || value instanceof Confirmations
        this.outbox.push(() => {
          if (client.closed) return
          this.onCommand?.({ args, reply: value, session: client.id, micros })
          if (isHeard) reply(shaped)
        })
      }
    }
    if (this.mustWait(client)) client.waiting.push(request)
    else {
      this.readTime()
      this.process(client, request)
    }
    this.settle()
    if (this.turns === 0) this.tracker.endTurn()
    this.flush()
  }

  private mustWait(client: Client): boolean {
    return client.blocked !== undefined || this.busy?.client === client || this.pause.holds(client)
  }

  /** Runs commands that arrived together. */
  turn(run: () => void): void {
    this.turns++
    run()
    this.turns--
    this.tracker.endTurn()
    this.flush()
  }

  private process(client: Client, request: Request): void {
    this.undo.begin()
    this.running = client
    const value = this.dispatch(client, request)
    this.running = undefined
    // A paused command has not started yet
    if (this.pause.holds(client)) return this.undo.commit()
    if (value !== BLOCKED) request.reply(value)
    for (const leaving of this.leaving.splice(0)) this.outbox.push(() => this.drop(leaving))
    this.tracker.settle()
    this.monitors.settle(this)
    if (client.tracking !== undefined && client.queue === undefined && !client.lastCommand.startsWith("client|")) {
      client.tracking.caching = undefined
    }
    if (client.replies === "skip") client.replies = "on"
    else if (client.replies === "skip next") client.replies = "skip"
    this.undo.commit()
  }

  /**
   * Serves the clients that can continue after a block or a pause, and runs the commands that they have sent in the
   * meantime.
   */
  settle(): void {
    for (let next = this.pause.next(); next !== undefined; next = this.pause.next()) this.processWaiting(next)
    this.serveReady()
    for (let next; (next = this.unblocked.shift()) !== undefined;) this.processWaiting(next)
  }

  private serveReady(): void {
    while (this.blocked.pending) {
      this.blocked.serveReady((blocked, serve) => {
        this.undo.begin()
        let value: Value | undefined
        this.running = blocked.client
        try {
          value = serve(new Context(this, blocked.client, false, false))
        } catch (error) {
          if (!(error instanceof Fail)) throw error
          value = error
        }
        this.running = undefined
        this.undo.commit()
        if (value !== undefined) this.unblock(blocked, value)
        this.tracker.settle()
      })
    }
  }

  /** Replies to a blocked client. Its next commands run only after all ready clients have been served, as in Redis. */
  unblock(blocked: Blocked, value: Value): void {
    this.blocked.remove(blocked)
    blocked.reply(value)
    this.unblocked.push(blocked.client)
  }

  /** Runs the next slice of the script that keeps the server busy. */
  step(): void {
    const { busy } = this
    if (busy === undefined) return
    this.undo.begin()
    this.running = busy.client
    const value = busy.script.resume()
    this.running = undefined
    this.undo.commit()
    if (value instanceof Paused) {
      busy.script = value
      return
    }
    this.busy = undefined
    busy.end()
    busy.reply(value)
    this.processWaiting(busy.client)
    this.settle()
    this.tracker.endTurn()
    this.flush()
  }

  private processWaiting(client: Client): void {
    while (!this.mustWait(client) && !client.closed) {
      const next = client.waiting.shift()
      if (next === undefined) return
      this.process(client, next)
      this.serveReady()
    }
  }

  private dispatch(client: Client, request: Request): Value | typeof BLOCKED {
    const { args } = request
    const name = args[0]!.toLowerCase()
    this.commandsProcessed++
    client.lastCommand = name
    client.lastAt = this.now
    const admitted = admit(this, client, args)
    if (typeof admitted === "string") return this.refuse(client, admitted, name)
    const { command, spec } = admitted
    if (this.pause.concerns(this.micros, spec, args, client, this.scripts)) {
      client.waiting.unshift(request)
      this.pause.hold(client)
      return BLOCKED
    }
    if (client.queue !== undefined && !atOnce.has(name)) {
      client.queue.push({ command, spec, args })
      return QUEUED
    }
    this.blockedReply = request.reply
    return this.call(new Context(this, client, false, false), command, spec, args)
  }

  /** Receives the reply to a command that blocks. */
  blockedReply: (value: Value) => void = () => {}

  call(
    context: Context,
    command: Command,
    spec: CommandSpec,
    args: ReadonlyArray<string>
  ): Value | typeof BLOCKED {
    const { client, script } = context
    if (!script) this.outer = { spec, args }
    // Monitors show a script before the commands that it runs
    const isSource = spec.flags.has("skip_monitor")
    if (isSource) this.monitors.show(this, client, spec, args, script)
    const value = runCommand(command, context, args)
    // Track the keys only now, or the client would be notified of an expired key that it never cached
    if (client.tracking !== undefined && isReader(spec)) this.tracker.read(client, this.outer.spec, this.outer.args)
    this.statistics.ran(spec, value)
    this.statistics.logSlow(this, script ? undefined : client, spec, args)
    if (!isSource) this.monitors.show(this, client, spec, args, script)
    return value
  }

  private refuse(client: Client, message: string, name?: string): Fail {
    if (name === "exec") {
      leaveMulti(this, client)
      return new Fail(`EXECABORT Transaction discarded because of: ${message.replace(/^ERR /, "")}`)
    }
    if (client.queue !== undefined) client.queueFailed = true
    return new Fail(message)
  }

  block(context: Context, wait: Wait): typeof BLOCKED {
    this.blocked.add({ ...wait, client: context.client, db: context.db.index, reply: this.blockedReply })
    return BLOCKED
  }

  drop(client: Client): void {
    if (client.closed) return
    client.closed = true
    if (client.blocked !== undefined) this.blocked.remove(client.blocked)
    this.pause.forget(client)
    client.waiting.length = 0
    this.subscribers.removeAll(client)
    this.tracker.disable(client)
    this.monitors.clients.delete(client)
    unwatchAll(this, client)
    this.clients.delete(client.id)
    const onClosed = this.onClosed.get(client.id)
    this.onClosed.delete(client.id)
    if (onClosed !== undefined) this.outbox.push(onClosed)
  }

  /** Like `drop`, but first sends the queued output and the reply to the running command. */
  dropLater(client: Client): void {
    this.leaving.push(client)
  }
}

/** Commands that run immediately inside MULTI instead of being queued. */
const atOnce = new Set("multi exec discard watch quit reset".split(" "))
