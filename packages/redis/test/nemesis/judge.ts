/** Judges the history of a run by the checkers of the simulator. */
import type { Checker, Simulation } from "@effect-simba/testkit"
import { replyTo } from "../simulate/jobsChecker.ts"
import type { Fault } from "./faults.ts"
import type { Line, Observed } from "./history.ts"
import type { Snapshot } from "./observer.ts"

type Event = Simulation.Result["events"][number]
type View = Parameters<Checker.Checker["start"]>[0]
type Command = Extract<Event, { readonly _tag: "Command" }>["command"]
type Owned = NonNullable<ReturnType<View["owner"]>>
type Entry = readonly [id: string, fields: ReadonlyArray<string>]

export interface History {
  readonly lines: ReadonlyArray<Line>
  readonly observed: ReadonlyArray<Observed>
  readonly snapshots: ReadonlyArray<Snapshot>
  readonly faults: ReadonlyArray<Fault>
  readonly phases: ReadonlyArray<readonly [phase: "liveness" | "closing" | "closed", at: number]>
  /** What is left when all processes have ended. */
  readonly left: {
    readonly keys: ReadonlyArray<{ readonly key: string; readonly expiresAt: number | undefined }>
    readonly subscriptions: number
    readonly connections: number
  }
}

export interface Judgement {
  readonly events: ReadonlyArray<Event>
  readonly violations: Simulation.Result["violations"]
}

/** The strings, streams and hashes of the servers, as far as checkers ask for them. */
class Keyspace {
  readonly strings = new Map<string, { value: string; until: number }>()
  readonly streams = new Map<string, Array<Entry>>()
  readonly hashes = new Map<string, Map<string, string>>()
  private readonly known: ReadonlySet<string>
  private readonly written = new Map<string, number>()

  constructor(known: ReadonlySet<string>) {
    this.known = known
  }

  restore({ since, streams, strings }: Snapshot) {
    const isOlder = (key: string) => (this.written.get(key) ?? never) >= since
    for (const [key, found] of strings) {
      if (isOlder(key)) continue
      if (found === undefined) this.strings.delete(key)
      else this.strings.set(key, { ...found })
    }
    for (const [key, entries] of streams) if (!isOlder(key)) this.streams.set(key, [...entries])
  }

  apply(at: number, [name, key = "", ...rest]: ReadonlyArray<string>) {
    const keys = name === "DEL" ? [key, ...rest] : ["SET", "PEXPIRE", "XADD"].includes(name ?? "") ? [key] : []
    for (const one of keys) this.written.set(one, at)
    switch (name) {
      case "SET": {
        if (!this.known.has(key)) return
        const px = rest.findIndex((option) => option.toUpperCase() === "PX")
        this.strings.set(key, { value: rest[0]!, until: px > 0 ? at + Number(rest[px + 1]) : Infinity })
        return
      }
      case "PEXPIRE": {
        const found = this.strings.get(key)
        if (found !== undefined && found.until >= at) found.until = at + Number(rest[0])
        return
      }
      case "DEL": {
        for (const one of [key, ...rest]) {
          this.strings.delete(one)
          this.streams.delete(one)
          this.hashes.delete(one)
        }
        return
      }
      case "HSET": {
        if (!this.known.has(key)) return
        const fields = this.hashes.get(key) ?? new Map<string, string>()
        this.hashes.set(key, fields)
        for (let i = 0; i < rest.length; i += 2) fields.set(rest[i]!, rest[i + 1]!)
        return
      }
      case "HDEL": {
        for (const field of rest) this.hashes.get(key)?.delete(field)
        return
      }
      case "XADD": {
        if (!this.known.has(key)) return
        const start = rest.findIndex((text) => text === "*" || /^\d+-\d+$/.test(text))
        const entries = this.streams.get(key) ?? []
        const last = Number((entries.at(-1)?.[0] ?? "0-0").split("-")[0])
        const id = rest[start] === "*" ? `${last + 1}-0` : rest[start]!
        // The server refused it
        if (Number(id.split("-")[0]) <= last) return
        this.streams.set(key, [...entries, [id, rest.slice(start + 1)]])
      }
    }
  }

  live(at: number, key: string) {
    const found = this.strings.get(key)
    return found !== undefined && at < found.until + 1 ? found : undefined
  }
}

interface Item {
  readonly at: number
  readonly run: () => void
}

const never = -Infinity

/** A server reads its clock before it shows the command, and a busy machine may come in between. Milliseconds. */
const jitter = 10

/** How long clients take to connect and subscribe again. Milliseconds. */
const restored = 3000

/** How long after the end of a subscription its client may notice. Milliseconds. */
const noticed = 5000

/** Two events of one instant: the server's first, since what processes note follows from it. */
const inOrder = (items: Array<Item>) => items.sort((a, b) => a.at - b.at)

export const judge = (
  history: History,
  lock: Simulation.LockModel,
  checkers: ReadonlyArray<Checker.Checker>,
  { data, isMember }: {
    /** The other keys that the checkers read. */
    readonly data: ReadonlyArray<string>
    /** Whose notes are judged. */
    readonly isMember: (client: string) => boolean
  }
): Judgement => {
  const { fencedKey, ownerKey, resources, tokenKey } = lock
  const keyspace = new Keyspace(
    new Set([
      ...data,
      ...resources.flatMap((resource) =>
        [ownerKey(resource), tokenKey?.(resource), fencedKey?.(resource)].flatMap((key) => key ?? [])
      )
    ])
  )
  let now = 0
  let phase: ReturnType<View["phase"]> = "safety"
  const events: Array<Event> = []
  const violations: Array<Simulation.Result["violations"][number]> = []
  const owners = new Map<string, Owned>()
  const isLive = ({ until }: Owned) => now < until + 1

  // What each process went through
  const lateness = new Map<string, Array<readonly [from: number, to: number]>>()
  for (const [at, client, , kind, fields] of history.lines) {
    if (kind !== "late") continue
    const turns = lateness.get(client) ?? []
    lateness.set(client, turns)
    turns.push([Number(fields["from"]), at])
  }
  const touching = (client: string | undefined) =>
    history.faults.filter(({ target }) => target === "server" || target === client)
  const byClient = new Map<string | undefined, ReadonlyArray<Fault>>()
  const faultsOf = (client: string | undefined) => {
    const known = byClient.get(client) ?? touching(client)
    byClient.set(client, known)
    return known
  }
  /** The last instant up to now that lies within one of them. */
  const lastWithin = (spans: Iterable<readonly [from: number, to: number]>) => {
    let last = never
    for (const [from, to] of spans) if (from <= now) last = Math.max(last, Math.min(now, to))
    return last
  }
  const span = ({ from, to }: Fault) => [from, to] as const
  /** After a fault of a server, connections and subscriptions come back one by one. */
  const disturbance = ({ from, target, to }: Fault) => [from, target === "server" ? to + restored : to] as const
  /** Turns that are so long are a disturbance too, whoever causes them. */
  const long = 150
  /** A process that subscribes again was deaf before: it noticed late that its connection was gone. */
  const deaf = new Map<string, Array<readonly [from: number, to: number]>>()
  const inboxes = new Map<string, string>()
  for (const [, client, , kind, { id }] of history.lines) {
    const inbox = kind === "granted" ? /^\d+-([0-9a-z]{12}):/.exec(String(id))?.[1] : undefined
    if (inbox !== undefined) inboxes.set(`simba:inbox:${inbox}`, client)
  }
  for (const { args: [name, ...channels], at } of history.observed) {
    if (name !== "SUBSCRIBE") continue
    const client = inboxes.get(channels.find((channel) => inboxes.has(channel)) ?? "")
    if (client !== undefined) deaf.set(client, [...deaf.get(client) ?? [], [at - noticed, at]])
  }
  const losses = history.faults.filter(({ loses }) => loses).map(span)
  const standing = new Map<string, ReadonlyArray<readonly [number, number]>>()
  const standstills = (client: string) => {
    const known = standing.get(client) ??
      history.faults.filter(({ kind, target }) => target === client && kind !== "kill").map(span)
    standing.set(client, known)
    return known
  }

  const clients = [...new Set(history.lines.map(([, client]) => client))].filter(isMember)
  const timers: Array<{ readonly millis: number; at: number; readonly run: () => void }> = []
  const places = new WeakMap<object, Array<{ resource: string; id: string; place: number }>>()
  const model: Simulation.LockModel = { ...lock, queued: (args) => places.get(args) }

  const viewOf = (checker: string): View => ({
    now: () => now,
    phase: () => phase,
    clients: clients.length,
    names: () => clients,
    lock: model,
    owner: (resource) => {
      const owned = owners.get(resource)
      return owned !== undefined && isLive(owned) ? owned : undefined
    },
    lastOwner: (resource) => owners.get(resource),
    serverNow: () => now,
    subscribers: () => 1,
    departures: () => 0,
    subscriptions: () => history.left.subscriptions,
    connections: () => history.left.connections,
    // A process that has ended by itself has neither
    fibers: () => 0,
    timers: () => 0,
    read: (key) => keyspace.live(now, key)?.value,
    hash: (key) => keyspace.hashes.get(key) ?? new Map(),
    field: () => undefined,
    stream: (key) => ({ entries: keyspace.streams.get(key) ?? [], group: () => undefined }),
    follow: () => () => ({ added: [], removed: [] }),
    expiresAt: (key) => keyspace.live(now, key)?.until,
    keys: () => history.left.keys,
    disturbedAt: (client) =>
      Math.max(
        lastWithin(faultsOf(client).map(disturbance)),
        client === undefined
          ? never
          : lastWithin((lateness.get(client) ?? []).filter(([from, to]) => to - from > long)),
        client === undefined ? never : lastWithin(deaf.get(client) ?? [])
      ),
    lossAt: () => lastWithin(losses),
    serverStepAt: () => never,
    serverForwardAt: () => never,
    clockStepAt: () => never,
    isRunning: (client) => !history.faults.some(({ from, target, to }) => target === client && from <= now && now < to),
    resumedAt: (client) => standstills(client).reduce((last, [, to]) => to <= now ? Math.max(last, to) : last, never),
    // Its turn that was under way: timers tell of it once it is over
    lateness: (client) =>
      (lateness.get(client) ?? []).reduce(
        (late, [from, to]) => from <= now && now <= to + 20 ? Math.max(late, to - from) : late,
        25
      ),
    isOrdered: () => true,
    sleptUntil: () => never,
    wasSuspended: () => false,
    every: (millis, run) => void timers.push({ millis, at: millis, run }),
    violated: (message) => void violations.push({ checker, at: now, message })
  })

  const started = checkers.map((checker) => checker.start(viewOf(checker.name)))
  const emit = (event: Event) => {
    events.push(event)
    for (const { onEvent } of started) onEvent?.(event)
  }

  const emitOwners = (command: Command | undefined) => {
    for (const resource of resources) {
      const before = owners.get(resource)
      const found = keyspace.live(now, ownerKey(resource))
      const id = found === undefined ? undefined : lock.identify?.(resource, found.value) ?? found.value
      const text = tokenKey === undefined ? undefined : keyspace.live(now, tokenKey(resource))?.value
      const token = text === undefined ? undefined : parseInt(text, 10)
      const until = found?.until ?? Infinity
      if (id === before?.id && (before === undefined || token === before.token || isLive(before))) {
        if (before !== undefined && before.until !== until) owners.set(resource, { ...before, until })
        continue
      }
      if (id === undefined) owners.delete(resource)
      else owners.set(resource, { id, token, until, since: now })
      emit({
        _tag: "Owner",
        at: now,
        resource,
        from: before?.id,
        since: before?.since ?? now,
        deadline: (before?.until ?? Infinity) - jitter,
        to: id,
        token,
        command
      })
    }
  }

  // A call of a script, and what it did
  const items: Array<Item> = []
  const groups: Array<ReadonlyArray<Observed>> = []
  const open = new Map<string, Array<Observed>>()
  for (const one of history.observed) {
    if (one.isScript) open.get(one.node)?.push(one)
    else {
      const group = [one]
      open.set(one.node, group)
      groups.push(group)
    }
  }
  const queueKeys = new Map(resources.map((resource) => [`${ownerKey(resource)}:contender`, resource]))
  for (const group of groups) {
    const [call, ...effects] = group as [Observed, ...Array<Observed>]
    const isCall = call.args[0] === "EVALSHA" || call.args[0] === "EVAL"
    // Another process than the fleet's, or the stream of a primary
    if (!isCall && !["XADD", "DEL", "SET"].includes(call.args[0]!)) continue
    items.push({
      at: call.at,
      run: () => {
        for (const { args } of isCall ? effects : [call]) {
          keyspace.apply(now, args)
          const resource = args[0] === "ZADD" ? queueKeys.get(args[1]!) : undefined
          if (resource === undefined) continue
          const found = places.get(call.args) ?? []
          places.set(call.args, found)
          found.push({ resource, id: args.at(-1)!, place: Number(args.at(-2)) })
        }
        const asked = lock.asked?.(call.args, null)
        const named = Array.isArray(asked) ? String(asked[0]?.id ?? "") : ""
        const client = clients.find((name) => named.includes(`:${name}.`) || named.includes(`@${name}.`)) ?? ""
        const ended = effects.some(({ args }) => args[0] === "DEL" || args[0] === "SET")
        const reply = replyOf(call.args, ended) ?? replyTo(call.args, effects.map(({ args }) => args))
        const command: Command = { client, role: "commands", args: call.args, reply, micros: now * 1000 }
        emit({ _tag: "Command", at: now, command })
        emitOwners(command)
      }
    })
  }
  for (const snapshot of history.snapshots) {
    items.push({
      at: snapshot.at,
      run: () => {
        keyspace.restore(snapshot)
        emitOwners(undefined)
      }
    })
  }
  for (const fault of history.faults) {
    items.push({
      at: fault.from,
      run: () =>
        emit({
          _tag: "Fault",
          at: now,
          fault: fault.kind,
          target: fault.target,
          text: `${fault.text} for ${Math.round(fault.to - fault.from)} ms`
        })
    })
  }
  for (const [at, client, generation, kind, fields] of history.lines) {
    if (kind === "late" || !isMember(client)) continue
    items.push({ at, run: () => emit({ _tag: "Note", at: now, client, generation, kind, fields }) })
  }
  for (const [name, at] of history.phases) {
    items.push({
      at,
      run: () => {
        if (name === "closing") { for (const { onConverged } of started) onConverged?.() }
        if (name === "closed") { for (const { onClosed } of started) onClosed?.() }
        phase = name
        emit({ _tag: "Phase", at: now, phase })
      }
    })
  }

  const passTo = (at: number) => {
    for (;;) {
      let next: (() => void) | undefined
      let when = at
      for (const { until } of owners.values()) {
        if (until + 1 < when) {
          when = until + 1
          next = () => {
            emit({ _tag: "Expiry", at: now })
            emitOwners(undefined)
          }
        }
      }
      for (const timer of timers) {
        if (timer.at < when && phase !== "closing" && phase !== "closed") {
          when = timer.at
          next = () => {
            timer.at += timer.millis
            timer.run()
          }
        }
      }
      if (next === undefined) break
      now = Math.max(now, when)
      next()
    }
    now = Math.max(now, at)
  }
  for (const item of inOrder(items)) {
    passTo(item.at)
    item.run()
  }
  return { events, violations }
}

/** MONITOR shows no replies: a script of held leases that removed or replaced one has ended those that it names. */
const replyOf = (args: ReadonlyArray<string>, ended: boolean): Command["reply"] => {
  if (!ended || args[7]?.startsWith("simba:given:") !== true) return null
  return Array.from({ length: (Number(args[2]) - 5) / 4 }, () => "Done")
}
