/**
 * Runs the simulator's checkers on a nemesis run's history. It replays the observed commands, the processes' notes and
 * the faults in chronological order.
 */
import type { Checker, Simulation } from "@effect-simba/testkit"
import { replyTo } from "../simulate/jobsChecker.ts"
import { disturbancesOf } from "./disturbances.ts"
import type { Fault } from "./faults.ts"
import type { Line, Observed } from "./history.ts"
import { Keyspace } from "./keyspace.ts"
import type { Snapshot } from "./observer.ts"

type Event = Simulation.Result["events"][number]
type View = Parameters<Checker.Checker["start"]>[0]
type Command = Extract<Event, { readonly _tag: "Command" }>["command"]
type Owned = NonNullable<ReturnType<View["owner"]>>

export interface History {
  readonly lines: ReadonlyArray<Line>
  readonly observed: ReadonlyArray<Observed>
  readonly snapshots: ReadonlyArray<Snapshot>
  readonly faults: ReadonlyArray<Fault>
  readonly phases: ReadonlyArray<readonly [phase: "liveness" | "closing" | "closed", at: number]>
  /** What is left on the servers after all processes have ended. */
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

interface Item {
  readonly at: number
  readonly run: () => void
}

const never = -Infinity

/** How many ms may pass on a busy machine between a server's clock reading and its line in MONITOR. */
const jitter = 10

/** Sorts by time. The sort is stable, so a server's command stays before a note that it caused at the same instant. */
const inOrder = (items: Array<Item>) => items.sort((a, b) => a.at - b.at)

export const judge = (
  history: History,
  lock: Simulation.LockModel,
  checkers: ReadonlyArray<Checker.Checker>,
  { data, isMember }: {
    /** The keys that the checkers read in addition to owners, tokens and fences. */
    readonly data: ReadonlyArray<string>
    /** The clients whose notes are judged. */
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
  /** The earliest possible end of each resource's lease. */
  const earliest = new Map<string, number>()
  const isLive = ({ until }: Owned) => now < until + 1

  const disturbances = disturbancesOf(history)

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
    // A process that has exited on its own has neither fibers nor timers
    fibers: () => 0,
    timers: () => 0,
    read: (key) => keyspace.live(now, key)?.value,
    hash: (key) => keyspace.hashes.get(key) ?? new Map(),
    field: (key, field) => keyspace.hashes.get(key)?.get(field),
    stream: (key) => ({ entries: keyspace.streams.get(key) ?? [], group: () => undefined }),
    follow: () => () => ({ added: [], removed: [] }),
    expiresAt: (key) => keyspace.live(now, key)?.until,
    keys: () => history.left.keys,
    disturbedAt: (client) => disturbances.disturbedAt(client, now),
    lossAt: () => disturbances.lossAt(now),
    serverStepAt: () => never,
    serverForwardAt: () => never,
    clockStepAt: () => never,
    isRunning: (client) => disturbances.isRunning(client, now),
    resumedAt: (client) => disturbances.resumedAt(client, now),
    lateness: (client) => disturbances.lateness(client, now),
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
      const deadline = earliest.get(resource) ?? Infinity
      if (found !== undefined) earliest.set(resource, found.earliest)
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
        deadline: (before === undefined ? Infinity : deadline) - jitter,
        to: id,
        token,
        command
      })
    }
  }

  // Group each script call with the commands that it ran
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
    // Only script calls and these plain commands change what the checkers read
    if (!isCall && !["XADD", "DEL", "SET"].includes(call.args[0]!)) continue
    items.push({
      at: call.at,
      run: () => {
        for (const { args, at } of isCall ? effects : [call]) {
          keyspace.apply(at, args, now)
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

/**
 * Infers the reply to a script that ends leases, because MONITOR shows no replies. If it deleted or replaced a key, all
 * leases that it names count as ended.
 */
const replyOf = (args: ReadonlyArray<string>, ended: boolean): Command["reply"] => {
  if (!ended || args[7]?.startsWith("simba:given:") !== true) return null
  return Array.from({ length: (Number(args[2]) - 5) / 5 }, () => "Done")
}
