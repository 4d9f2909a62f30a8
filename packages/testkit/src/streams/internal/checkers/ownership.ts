/**
 * Checks the owners of data streams: no stream stays orphaned for too long, moves without a reason, or is taken from a
 * live owner.
 */
import { beliefs } from "../../../internal/checkers/excuses.ts"
import { seconds } from "../../../internal/checkers/fields.ts"
import type { Event } from "../../../internal/simulation/history.ts"
import { all } from "../../../internal/simulation/ownershipTracker.ts"
import type { Checker, View } from "../../../internal/simulation/setup.ts"
import { checker, fallen, field, isFinished, isPaused, named, type StreamModel, touches } from "./model.ts"

/** The interval at which the checker searches for orphans. */
const intervalMillis = 100

interface Lease {
  /** The consumer named in the lease's value. */
  consumer: string | undefined
  /** The server time at which the lease ends. */
  until: number
}

/** Tracks the server's leases. To be fast, reads a lease again only after a command that names its key. */
const followLeases = (view: View, model: StreamModel) => {
  const known = new Map<string, Lease>()
  /** Whether a fault may have changed leases since they were last read. */
  let isStale = false
  const read = (key: string, lease: Lease) => {
    const value = view.read(key)
    lease.consumer = value === undefined ? undefined : model.holder(value)
    lease.until = value === undefined ? -Infinity : view.expiresAt(key) ?? -Infinity
  }
  return {
    onEvent: (event: Event) => {
      if (event._tag === "Fault") isStale = true
      if (event._tag !== "Command") return
      for (const arg of event.command.args) {
        const lease = known.get(arg)
        if (lease !== undefined) read(arg, lease)
      }
    },
    of: (key: string) => {
      const lease: Lease = known.get(key) ?? { consumer: undefined, until: -Infinity }
      read(key, lease)
      known.set(key, lease)
      return lease
    },
    /** Returns a predicate for leases that are currently live. */
    refresh: () => {
      if (isStale) { for (const [key, lease] of known) read(key, lease) }
      isStale = false
      const now = Math.floor(view.serverNow())
      return ({ until }: Lease) => now <= until
    }
  }
}

export const noOrphans = (model: StreamModel, bounds: { own: number; go: number }, recovery: number): Checker =>
  checker("orphans are taken", (view) => {
    const joined = new Map<string, { readonly consumer: string; readonly capacity: number; readonly at: number }>()
    /** Since when each client has had free capacity. */
    const able = new Map<string, number>()
    const orphans = new Map<string, { readonly since: number; readonly consumer: string | undefined }>()
    const ownedAt = new Map<string, number>()
    const leases = followLeases(view, model)
    const owners = model.streams.map((stream) => leases.of(view.lock.ownerKey(stream)))
    const changes = view.follow(model.input)
    const announced = new Map<string, { readonly name: string; readonly leases: ReadonlyArray<Lease> }>()
    const check = () => {
      const now = view.now()
      const isLive = leases.refresh()
      const owned = new Map<string | undefined, number>()
      for (const lease of owners) if (isLive(lease)) owned.set(lease.consumer, (owned.get(lease.consumer) ?? 0) + 1)
      for (const [client, { at, capacity, consumer }] of joined) {
        if (!view.isRunning(client) || (owned.get(consumer) ?? 0) >= capacity) able.delete(client)
        else able.set(client, Math.max(able.get(client) ?? now, at, view.disturbedAt(client) + recovery))
      }
      const { added, removed } = changes()
      for (const [entry, fields] of added) {
        const name = model.announcement(fields)
        if (name === undefined) continue
        const keys = [view.lock.ownerKey(name), model.entryLease(name, entry)]
        announced.set(entry, { name, leases: keys.map(leases.of) })
      }
      for (const [entry] of removed) {
        announced.delete(entry)
        orphans.delete(entry)
      }
      const group = view.stream(model.input)?.group(model.group)
      for (const [entry, { leases, name }] of announced) {
        if (leases.some(isLive) || isFinished(view, model, entry) || isPaused(view, model, name)) {
          orphans.delete(entry)
          continue
        }
        const delivery = group?.delivery(entry)
        const consumer = delivery?.consumer
        const before = orphans.get(entry)
        const isMoved = before === undefined || (before.consumer !== consumer &&
          (before.consumer === undefined || (consumer !== undefined && model.isGoConsumer(consumer))))
        const since = isMoved ? now : before.since
        orphans.set(entry, { since, consumer })
        // If the server has lost the list of effect-simba consumers, a dead one may be mistaken for a Go consumer
        const countsAsGo = delivery !== undefined && (model.isGoConsumer(delivery.consumer) ||
          now - (view.serverNow() - delivery.deliveredAt) <= view.lossAt() + recovery)
        const bound = countsAsGo ? bounds.go : bounds.own
        for (const [client, ableSince] of able) {
          // A data stream's second announcement waits for the first one
          const from = Math.max(since, ownedAt.get(name) ?? 0, ableSince, view.lossAt() + recovery)
          if (now - from <= bound) continue
          orphans.set(entry, { since: now, consumer })
          view.violated(`${entry} (${name}) has had no owner since ${seconds(from)}, but ${client} is not full`)
        }
      }
    }
    const leave = (client: string) => {
      joined.delete(client)
      able.delete(client)
    }
    view.every(intervalMillis, check)
    return {
      onEvent: (event) => {
        const gone = fallen(event)
        leases.onEvent(event)
        if (gone !== undefined) return leave(gone)
        if (event._tag === "Owner") ownedAt.set(event.resource, event.at)
        const note = named(event, "joined", "left")
        if (note === undefined) return
        if (note.kind === "left") return leave(note.client)
        joined.set(note.client, {
          consumer: field(note.fields, "consumer"),
          capacity: Number(note.fields["capacity"]),
          at: note.at
        })
      }
    }
  })

/**
 * Checks that data streams are not handed over unnecessarily. There are two reasons for handing a data stream over
 * again: a member joined or left, or, after `stay`, the shares changed because other data streams were taken or ended.
 * The change may precede the first hand-over by up to `settle`, because the sender may not have known about it yet.
 */
export const noPingPong = (model: StreamModel, settle: number, stay: number): Checker =>
  checker("no ping-pong", (view) => {
    let membership = ""
    let changedAt = 0
    let loadedAt = 0
    const moved = new Map<string, number>()
    return {
      onEvent: (event) => {
        if (event._tag === "Expiry" || touches(event, model.members)) {
          const now = [...view.hash(model.members)].map(([member, value]) => `${member}/${value.split("|")[0]}`).sort()
            .join()
          if (now !== membership) changedAt = event.at
          membership = now
        }
        if (event._tag !== "Owner") return
        const { at, command, from, resource, to } = event
        const released = command === undefined ? [] : all(view.lock.released?.(command.args, command.reply))
        const isDelivered = from !== undefined && to !== undefined && released.some(({ id }) => id === from)
        if (!isDelivered) {
          loadedAt = at
          return void moved.delete(resource)
        }
        const before = moved.get(resource)
        if (before !== undefined && changedAt < before - settle) {
          const first = `${resource} was handed over at ${seconds(before)}, and again`
          if (at - before < stay) view.violated(`${first}, although no member joined or left`)
          else if (loadedAt < before - settle) view.violated(`${first} later, although nothing had changed`)
        }
        moved.set(resource, at)
      }
    }
  })

export const liveGoConsumersAreLeftAlone = (model: StreamModel): Checker =>
  checker("live Go consumers are left alone", (view) => {
    const { isExcused, onEvent } = beliefs(view)
    const leases = new Map<string, { readonly holder: string; readonly until: number; readonly since: number }>()
    const keys = new Set<string>()
    const changes = view.follow(model.input)
    const check = (key: string, client: string, at: number) => {
      const value = view.read(key)
      const before = leases.get(key)
      const now = view.serverNow()
      const until = value === undefined
        ? 0
        : view.expiresAt(key) ?? (value === before?.holder ? before.until : 0)
      if (
        before !== undefined && value !== before.holder && model.isGoConsumer(before.holder) &&
        !model.isGoConsumer(client) &&
        now <= before.until && view.lossAt() < before.since && view.serverStepAt() < before.since
      ) {
        view.violated(
          `${client} took ${key} from ${before.holder}, ${seconds(before.until - now)} before it expired`
        )
      }
      if (value === undefined) leases.delete(key)
      else leases.set(key, { holder: value, until, since: value === before?.holder ? before.since : at })
    }
    return {
      onEvent: (event) => {
        onEvent(event)
        if (event._tag === "Command") {
          for (const [entry, fields] of touches(event, model.input) ? changes().added : []) {
            const name = model.announcement(fields)
            if (name !== undefined) keys.add(model.entryLease(name, entry))
          }
          for (const arg of event.command.args) if (keys.has(arg)) check(arg, event.command.client, event.at)
        }
        const note = named(event, "begin", "step")
        if (note === undefined || !("entry" in note.fields)) return
        const id = field(note.fields, "id")
        const key = model.entryLease(field(note.fields, "resource"), field(note.fields, "entry"))
        const value = view.read(key)
        if (
          value === undefined || !model.isGoConsumer(value) ||
          isExcused(note.client, field(note.fields, "resource"), id, true)
        ) return
        view.violated(`${id} works under ${key}, which belongs to ${value}`)
      }
    }
  })

/** The duration of a Go consumer's lease. */
const goLeaseMillis = 2000

/** How long after delivery an entry is left to a Go consumer that has not locked it yet. */
const lockMillis = 40_000

/** How long a Go consumer may take to finish an entry after it has unlocked it. */
const finishMillis = 200

/** The number of failed attempts to lock an entry after which a Go consumer stops reading. */
const lockTries = 32

/** How long after a fault a client may still process late messages. */
const latenessMillis = 2000

/** The delivery of an entry to a Go consumer, and what has happened to the entry since. */
interface Delivery {
  readonly stream: string
  readonly key: string
  readonly consumer: string
  readonly deliveredAt: number
  readonly since: number
  readonly lease: string | undefined
  /** The server time at which the lease ends. */
  readonly until: number
  readonly hasLocked: boolean
  /**
   * Whether the entry may have been locked after an earlier delivery. The expired event for that lease may arrive late.
   */
  readonly wasLocked: boolean
  /**
   * Whether the lease has ever expired. A late renewal restores the lease, but cannot stop a client that is about to
   * take the entry.
   */
  readonly hasExpired: boolean
  readonly unlockedAt: number
  /** How often this consumer was refused because another consumer held the lock. At `lockTries`, its reader stops. */
  readonly refusals: number
}

export const goConsumersHaveTime = (model: StreamModel): Checker =>
  checker("Go consumers have time to finish", (view) => {
    /** The entries that are pending for Go consumers. */
    let all = new Map<string, Delivery>()
    const names = new Map<string, string | undefined>()
    const changes = view.follow(model.input)
    const judge = (entry: string, before: Delivery, client: string, at: number) => {
      const { consumer, deliveredAt, hasExpired, hasLocked, since, stream, unlockedAt, wasLocked } = before
      const idle = view.serverNow() - deliveredAt
      const took = `${client} took ${entry} (${stream}) from ${consumer}`
      if (view.lossAt() >= since || view.serverStepAt() >= since) return
      const wasLate = at - Math.max(view.disturbedAt(client), view.resumedAt(client)) < latenessMillis
      // If a consumer claimed an entry after its lease expired, it has the duration of one lease to lock it
      if (!hasLocked && wasLocked && idle >= goLeaseMillis) return
      if (!hasLocked && (wasLocked && wasLate || before.refusals >= lockTries)) return
      if (!hasLocked && idle < lockMillis) return view.violated(`${took}, which had not locked it in ${seconds(idle)}`)
      const passed = at - unlockedAt
      if (!hasExpired && passed < finishMillis) view.violated(`${took}, which unlocked it ${seconds(passed)} earlier`)
    }
    /** Returns the delivery as changed by an event: a command from `client` or, without a client, an expiry. */
    const next = (entry: string, before: Delivery, client: string | undefined, at: number): Delivery => {
      const lease = view.read(before.key)
      if (client === undefined && lease === before.lease) return before
      const isUnlocked = lease === undefined && before.lease !== undefined && view.serverNow() < before.until
      if (lease !== undefined && lease !== before.lease && client !== undefined && !model.isGoConsumer(lease)) {
        judge(entry, before, client, at)
      }
      return {
        ...before,
        lease,
        // The server may keep a key for a while after its expiry
        until: lease === undefined
          ? -Infinity
          : view.expiresAt(before.key) ?? (lease === before.lease ? before.until : Infinity),
        hasLocked: before.hasLocked || lease === before.consumer,
        hasExpired: before.hasExpired || lease === undefined && before.lease !== undefined && !isUnlocked,
        unlockedAt: isUnlocked ? at : before.unlockedAt
      }
    }
    return {
      onEvent: (event) => {
        if (event._tag !== "Command" && event._tag !== "Expiry") return
        const client = event._tag === "Command" ? event.command.client : undefined
        for (const [entry, before] of all) {
          if (event._tag === "Expiry" || touches(event, before.key)) {
            const { args, reply } = event._tag === "Command" ? event.command : { args: [], reply: undefined }
            const isRefused = args[0] === "SET" && args[2] === before.consumer && reply === null
            const refusals = before.refusals + (isRefused ? 1 : 0)
            all.set(entry, { ...next(entry, before, client, event.at), refusals })
          }
        }
        if (!touches(event, model.input)) return
        const { added, removed } = changes()
        for (const [entry, fields] of added) names.set(entry, model.announcement(fields))
        for (const [entry] of removed) names.delete(entry)
        const group = view.stream(model.input)?.group(model.group)
        const found = new Map<string, Delivery>()
        for (const entry of group?.consumers.filter(model.isGoConsumer).flatMap(group.pendingOf) ?? []) {
          const [delivery, name, before] = [group?.delivery(entry), names.get(entry), all.get(entry)]
          if (delivery === undefined || name === undefined) continue
          const isSame = before?.consumer === delivery.consumer && before.deliveredAt === delivery.deliveredAt
          const key = model.entryLease(name, entry)
          const lease = view.read(key)
          const { consumer } = delivery
          found.set(
            entry,
            isSame
              ? before
              : {
                ...delivery,
                stream: name,
                key,
                lease,
                until: lease === undefined ? -Infinity : view.expiresAt(key) ?? Infinity,
                since: event.at,
                hasLocked: lease === consumer,
                hasExpired: false,
                wasLocked: before === undefined ? delivery.deliveries > 1 : before.hasLocked || before.wasLocked,
                unlockedAt: -Infinity,
                refusals: 0
              }
          )
        }
        all = found
      }
    }
  })
