/**
 * The state of the server and the path of a command through it: arity, error states, subscribed mode, MULTI, the
 * command itself, then those whom it unblocked. Replies and pushes leave only when the state is consistent, so that
 * whoever gets one may send the next command at once.
 */
import type { Blocked } from "./blocked.ts"
import { BlockedClients } from "./blocked.ts"
import type { Client, Request } from "./client.ts"
import { subscriptions } from "./client.ts"
import { defaultConfig } from "./config.ts"
import { globMatch } from "./glob.ts"
import { flushScripts, leaveMulti, unwatchAll, watchersOf } from "./housekeeping.ts"
import { Journal } from "./journal.ts"
import type { KeyspaceHost } from "./keyspace.ts"
import { Keyspace } from "./keyspace.ts"
import type { LuaScript } from "./lua.ts"
import type { EventClass } from "./notifications.ts"
import { parseFlags, wants, wantsKeyevent, wantsKeyspace } from "./notifications.ts"
import type { Command, Context } from "./registry.ts"
import { BLOCKED, checkArity, commands } from "./registry.ts"
import type { Value } from "./reply.ts"
import { Fail, QUEUED, toBytes, toReply } from "./reply.ts"
import type { EngineOptions, ErrorState, Push, Trace } from "./types.ts"
import type { Entry } from "./values.ts"
import { isEmpty } from "./values.ts"

export const DATABASES = 16

export const ERROR_STATES: Readonly<Record<ErrorState, string>> = {
  LOADING: "LOADING Redis is loading the dataset in memory",
  BUSY: "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
  READONLY: "READONLY You can't write against a read only replica.",
  MASTERDOWN: "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  CLUSTERDOWN: "CLUSTERDOWN The cluster is down",
  TRYAGAIN: "TRYAGAIN Multiple keys request during rehashing of slot"
}

export class RunContext implements Context {
  readonly server: Server
  readonly client: Client
  readonly db: Keyspace
  readonly now: number
  readonly atomic: boolean
  readonly script: boolean

  constructor(server: Server, client: Client, atomic: boolean, script: boolean) {
    this.server = server
    this.client = client
    this.db = server.dbs[client.db]!
    this.now = server.now
    this.atomic = atomic
    this.script = script
  }

  changed(key: string, kind: EventClass, event: string, db = this.db): void {
    this.server.touch(db, key)
    this.server.notify(db, key, kind, event)
  }

  dropIfEmpty(key: string, entry: Entry): boolean {
    if (!isEmpty(entry)) return false
    this.db.remove(key)
    this.server.notify(this.db, key, "g", "del")
    return true
  }
}

export class Server implements KeyspaceHost {
  readonly options: EngineOptions
  readonly dbs: Array<Keyspace>
  readonly clients = new Map<number, Client>()
  readonly blocked = new BlockedClients()
  readonly scripts = new Map<string, LuaScript>()
  readonly channels = new Map<string, Set<Client>>()
  readonly patterns = new Map<string, Set<Client>>()
  readonly shards = new Map<string, Set<Client>>()
  readonly watchers = new Map<string, Set<Client>>()
  readonly onClosed = new Map<number, () => void>()
  readonly undo: Journal
  config = defaultConfig()
  flags = 0
  now = 0
  micros = 0
  errorState: ErrorState | undefined
  onCommand: ((trace: Trace) => void) | undefined
  nextClientId = 1
  commandsProcessed = 0
  expiredKeys = 0
  startedAt: number
  private outbox: Array<() => void> = []

  constructor(options: EngineOptions) {
    this.options = options
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
    const [low, high] = this.options.expiryDelayMillis ?? [0, 100]
    const delay = high <= low ? low : low + (high - low) * this.options.random()
    return (deadline + 1) * 1000 + Math.floor(delay * 1000)
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
    if (this.watchers.size === 0) return
    for (const client of watchersOf(this, db.index, key)) {
      const watched = client.watched.find((item) => item.db === db.index && item.key === key)
      if (watched?.expired === true && byExpiry) {
        watched.expired = false
        continue
      }
      client.touched = true
    }
  }

  setFlags(text: string): boolean {
    const flags = parseFlags(text)
    if (flags === undefined) return false
    this.flags = flags
    return true
  }

  notify(db: Keyspace, key: string, kind: EventClass, event: string): void {
    if (!wants(this.flags, kind)) return
    if (wantsKeyspace(this.flags)) this.publish(`__keyspace@${db.index}__:${key}`, event)
    if (wantsKeyevent(this.flags)) this.publish(`__keyevent@${db.index}__:${event}`, key)
  }

  publish(channel: string, message: string): number {
    let count = 0
    for (const client of this.channels.get(channel) ?? []) {
      this.push(client, { _tag: "message", channel, message })
      count++
    }
    for (const [pattern, clients] of this.patterns) {
      if (!globMatch(pattern, channel)) continue
      for (const client of clients) {
        this.push(client, { _tag: "pmessage", pattern, channel, message })
        count++
      }
    }
    return count
  }

  push(client: Client, push: Push): void {
    const text = decodePush(push)
    this.outbox.push(() => {
      if (!client.closed) client.push(text)
    })
  }

  flush(): void {
    for (;;) {
      const next = this.outbox.shift()
      if (next === undefined) return
      next()
    }
  }

  /** Entry of a session's command. */
  submit(client: Client, args: ReadonlyArray<string>, reply: (reply: ReturnType<typeof toReply>) => void): void {
    if (client.closed || args.length === 0) return
    const micros = this.options.nowMicros()
    const request: Request = {
      args: args.map(toBytes),
      reply: (value) => {
        const text = toReply(value)
        this.outbox.push(() => {
          if (client.closed) return
          this.onCommand?.({ args, reply: text, session: client.id, micros })
          reply(text)
        })
      }
    }
    if (client.blocked !== undefined) client.waiting.push(request)
    else {
      this.readTime()
      this.process(client, request)
    }
    this.settle()
    this.flush()
  }

  private process(client: Client, request: Request): void {
    this.undo.begin()
    const value = this.dispatch(client, request)
    if (value !== BLOCKED) request.reply(value)
    this.undo.commit()
  }

  /** Serves the blocked, and what their sessions sent meanwhile. */
  settle(): void {
    while (this.blocked.pending) {
      this.blocked.serveReady((blocked, serve) => {
        this.undo.begin()
        let value: Value | undefined
        try {
          value = serve()
        } catch (error) {
          if (!(error instanceof Fail)) throw error
          value = error
        }
        this.undo.commit()
        if (value === undefined) return false
        this.unblock(blocked, value)
        return true
      })
    }
  }

  unblock(blocked: Blocked, value: Value): void {
    this.blocked.remove(blocked)
    blocked.reply(value)
    const { client } = blocked
    while (client.blocked === undefined && !client.closed) {
      const next = client.waiting.shift()
      if (next === undefined) return
      this.process(client, next)
    }
  }

  private dispatch(client: Client, request: Request): Value | typeof BLOCKED {
    const { args } = request
    const name = args[0]!.toLowerCase()
    const command = commands.get(name)
    this.commandsProcessed++
    client.lastCommand = name
    client.lastAt = this.now
    if (command === undefined) return this.refuse(client, unknownCommand(args))
    const problem = checkArity(command, args)
    if (problem !== undefined) return this.refuse(client, problem, name)
    const refusal = this.stateRefusal(command)
    if (refusal !== undefined) return this.refuse(client, refusal)
    if (subscriptions(client) > 0 && !command.flags.includes("p")) {
      return this.refuse(
        client,
        `ERR Can't execute '${name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`
      )
    }
    if (client.queue !== undefined && !command.flags.includes("m")) {
      client.queue.push({ command, args })
      return QUEUED
    }
    this.blockedReply = request.reply
    return this.call(new RunContext(this, client, false, false), command, args)
  }

  /** Who gets the reply of a command that blocks. */
  blockedReply: (value: Value) => void = () => {}

  call(context: Context, command: Command, args: ReadonlyArray<string>): Value | typeof BLOCKED {
    try {
      return command.run(context, args)
    } catch (error) {
      if (error instanceof Fail) return error
      throw error
    }
  }

  stateRefusal(command: Command): string | undefined {
    const state = this.errorState
    if (state === undefined || (state === "READONLY" && !command.write)) return undefined
    if (state !== "READONLY" && command.flags.includes("l")) return undefined
    return ERROR_STATES[state]
  }

  private refuse(client: Client, message: string, name?: string): Fail {
    if (name === "exec") {
      if (client.queue !== undefined) leaveMulti(this, client)
      return new Fail(`EXECABORT Transaction discarded because of: ${message.replace(/^ERR /, "")}`)
    }
    if (client.queue !== undefined) client.queueFailed = true
    return new Fail(message)
  }

  block(context: Context, blocked: Omit<Blocked, "client" | "db" | "since" | "reply">): typeof BLOCKED {
    this.blocked.add({
      ...blocked,
      client: context.client,
      db: context.db.index,
      since: this.micros,
      reply: this.blockedReply
    })
    return BLOCKED
  }

  drop(client: Client): void {
    if (client.closed) return
    client.closed = true
    if (client.blocked !== undefined) this.blocked.remove(client.blocked)
    client.waiting.length = 0
    this.unsubscribeAll(client)
    unwatchAll(this, client)
    this.clients.delete(client.id)
    const onClosed = this.onClosed.get(client.id)
    this.onClosed.delete(client.id)
    if (onClosed !== undefined) this.outbox.push(onClosed)
  }

  /** As `drop`, but what has already been said to the client still reaches it. */
  dropLater(client: Client): void {
    this.outbox.push(() => this.drop(client))
  }

  unsubscribeAll(client: Client): void {
    for (
      const [index, own] of [[this.channels, client.channels], [this.patterns, client.patterns], [
        this.shards,
        client.shards
      ]] as const
    ) {
      for (const name of own) {
        const all = index.get(name)
        all?.delete(client)
        if (all?.size === 0) index.delete(name)
      }
      own.clear()
    }
  }

  contextFor(client: Client): RunContext {
    return new RunContext(this, client, false, false)
  }

  failure(message: string): Fail {
    return new Fail(message)
  }

  flushScripts(): void {
    flushScripts(this)
  }
}

const decodePush = (push: Push): Push => {
  const plain = toReply([push.channel, push.message]) as ReadonlyArray<string>
  const channel = plain[0]!
  const message = plain[1]!
  return push._tag === "message"
    ? { _tag: "message", channel, message }
    : { _tag: "pmessage", pattern: toReply(push.pattern) as string, channel, message }
}

const unknownCommand = (args: ReadonlyArray<string>): string => {
  let shown = ""
  for (let i = 1; i < args.length && shown.length < 128; i++) shown += `'${args[i]!.slice(0, 128 - shown.length)}' `
  return `ERR unknown command '${args[0]!.slice(0, 128)}', with args beginning with: ${shown}`.replace(/[\r\n]/g, " ")
}
