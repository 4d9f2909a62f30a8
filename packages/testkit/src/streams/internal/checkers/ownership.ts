/** The checkers of owners: no stream is orphaned for long, moved without reason, or taken from a live owner. */
import { beliefs } from "../../../internal/checkers/excuses.ts"
import { seconds } from "../../../internal/checkers/fields.ts"
import { all } from "../../../internal/simulation/ownershipTracker.ts"
import type { Checker } from "../../../internal/simulation/setup.ts"
import { checker, fallen, field, isFinished, named, type StreamModel, touches } from "./model.ts"

/** How often orphans are looked for, in milliseconds. */
const interval = 100

export const noOrphans = (model: StreamModel, bounds: { ours: number; stock: number }, recovery: number): Checker =>
  checker("orphans are taken", (view) => {
    /** Each consumer: since when it has had room, if it has any. */
    const joined = new Map<string, { readonly consumer: string; readonly capacity: number; readonly at: number }>()
    const able = new Map<string, number>()
    const orphans = new Map<string, { readonly since: number; readonly consumer: string | undefined }>()
    const ownedAt = new Map<string, number>()
    const isLive = (key: string) => view.read(key) !== undefined && !hasExpired(key)
    let deadlines = new Map<string, number>()
    const hasExpired = (key: string) => !deadlines.has(key)
    const look = () => {
      const now = view.now()
      deadlines = new Map(view.keys().map(({ expiresAt, key }) => [key, expiresAt ?? Infinity]))
      const owners = model.streams.map((stream) => view.lock.ownerKey(stream)).filter(isLive).map((key) =>
        model.holder(view.read(key)!)
      )
      for (const [client, { at, capacity, consumer }] of joined) {
        const owned = owners.filter((owner) => owner === consumer).length
        if (!view.isRunning(client) || owned >= capacity) able.delete(client)
        else able.set(client, Math.max(able.get(client) ?? now, at, view.disturbedAt(client) + recovery))
      }
      const stream = view.stream(model.input)
      const pending = stream?.groups.get(model.group)?.pending
      const seen = new Set<string>()
      for (const [entry, fields] of stream?.entries ?? []) {
        const name = model.announcement(fields)
        if (name === undefined || isLive(view.lock.ownerKey(name)) || isLive(model.entryLease(name, entry))) continue
        if (isFinished(view, model, entry)) continue
        seen.add(entry)
        const consumer = pending?.get(entry)?.consumer
        const before = orphans.get(entry)
        const isMoved = before === undefined || (before.consumer !== consumer &&
          (before.consumer === undefined || (consumer !== undefined && model.isStock(consumer))))
        const since = isMoved ? now : before.since
        orphans.set(entry, { since, consumer })
        const bound = consumer !== undefined && model.isStock(consumer) ? bounds.stock : bounds.ours
        for (const [client, ableSince] of able) {
          // A second announcement of a data stream waits for the first
          const from = Math.max(since, ownedAt.get(name) ?? 0, ableSince, view.lossAt() + recovery)
          if (now - from <= bound) continue
          orphans.set(entry, { since: now, consumer })
          view.violated(`${entry} (${name}) has had no owner since ${seconds(from)}, and ${client} has room`)
        }
      }
      for (const entry of [...orphans.keys()]) if (!seen.has(entry)) orphans.delete(entry)
    }
    const leave = (client: string) => {
      joined.delete(client)
      able.delete(client)
    }
    view.every(interval, look)
    return {
      onEvent: (event) => {
        const gone = fallen(event)
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
 * A second hand-over has two reasons. A member joined or left: at once. The shares changed, since other data streams were
 * taken or ended: not before `stay`. Either change may precede the first hand-over by `settle`, unknown to its sender.
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
        const isGiven = from !== undefined && to !== undefined && released.some(({ id }) => id === from)
        if (!isGiven) {
          loadedAt = at
          return void moved.delete(resource)
        }
        const before = moved.get(resource)
        if (before !== undefined && changedAt < before - settle) {
          const first = `${resource} was handed over at ${seconds(before)}, and again`
          if (at - before < stay) view.violated(`${first}, though nobody came or went`)
          else if (loadedAt < before - settle) view.violated(`${first} at its time, though everything was as before`)
        }
        moved.set(resource, at)
      }
    }
  })

export const livingAreLeftAlone = (model: StreamModel): Checker =>
  checker("stock consumers that live are left alone", (view) => {
    const { isExcused, onEvent } = beliefs(view)
    const leases = new Map<string, { readonly holder: string; readonly until: number; readonly since: number }>()
    const entries = new Map<string, string>()
    const look = (key: string, client: string, at: number) => {
      const value = view.read(key)
      const before = leases.get(key)
      const now = view.serverNow()
      const until = value === undefined
        ? 0
        : view.expiresAt(key) ?? (value === before?.holder ? before.until : 0)
      if (
        before !== undefined && value !== before.holder && model.isStock(before.holder) && !model.isStock(client) &&
        now <= before.until && view.lossAt() < before.since && view.serverStepAt() < before.since
      ) {
        view.violated(
          `${client} took ${key} from ${before.holder}, ${seconds(before.until - now)} before its time was up`
        )
      }
      if (value === undefined) leases.delete(key)
      else leases.set(key, { holder: value, until, since: value === before?.holder ? before.since : at })
    }
    return {
      onEvent: (event) => {
        onEvent(event)
        if (event._tag === "Command") {
          const stream = touches(event, model.input) ? view.stream(model.input) : undefined
          for (const [entry, fields] of stream?.entries ?? []) {
            const name = model.announcement(fields)
            if (name !== undefined && !entries.has(entry)) entries.set(entry, model.entryLease(name, entry))
          }
          for (const key of entries.values()) {
            if (event.command.args.includes(key)) look(key, event.command.client, event.at)
          }
        }
        const note = named(event, "begin", "step")
        if (note === undefined || !("entry" in note.fields)) return
        const id = field(note.fields, "id")
        const key = model.entryLease(field(note.fields, "resource"), field(note.fields, "entry"))
        const value = view.read(key)
        if (value === undefined || !model.isStock(value) || isExcused(note.client, id, true)) return
        view.violated(`${id} works under ${key}, which belongs to ${value}`)
      }
    }
  })

/** In milliseconds: until others of its kind would take what it has not locked, and for the calls after it unlocked. */
const [timeToLock, timeToFinish] = [40_000, 200]

/** An entry, and what its consumer did since it was given it. */
interface Given {
  readonly stream: string
  readonly key: string
  readonly consumer: string
  readonly deliveredAt: number
  readonly since: number
  readonly lease: string | undefined
  /** Server time at which the lease ends. */
  readonly until: number
  readonly hasLocked: boolean
  readonly unlockedAt: number
}

export const stockHaveTime = (model: StreamModel): Checker =>
  checker("stock consumers have their time", (view) => {
    let all = new Map<string, Given>()
    const endOf = (key: string) => view.expiresAt(key) ?? Infinity
    const judge = (entry: string, before: Given, client: string, at: number) => {
      const { consumer, deliveredAt, hasLocked, since, stream, unlockedAt } = before
      const idle = view.serverNow() - deliveredAt
      const took = `${client} took ${entry} (${stream}) from ${consumer}`
      if (view.lossAt() >= since || view.serverStepAt() >= since) return
      if (!hasLocked && idle < timeToLock) return view.violated(`${took}, which has not locked it for ${seconds(idle)}`)
      const passed = at - unlockedAt
      if (passed < timeToFinish) view.violated(`${took}, which unlocked it ${seconds(passed)} before`)
    }
    /** What it is now, after a command of this client or an expiry. */
    const next = (entry: string, before: Given, client: string | undefined, at: number): Given => {
      const lease = view.read(before.key)
      if (client === undefined && lease === before.lease) return before
      const isUnlocked = lease === undefined && before.lease !== undefined && view.serverNow() < before.until
      if (
        lease !== undefined && lease !== before.lease && client !== undefined && !model.isStock(lease) &&
        model.isStock(before.consumer)
      ) {
        judge(entry, before, client, at)
      }
      return {
        ...before,
        lease,
        until: lease === undefined ? -Infinity : endOf(before.key),
        hasLocked: before.hasLocked || lease === before.consumer,
        unlockedAt: isUnlocked ? at : before.unlockedAt
      }
    }
    return {
      onEvent: (event) => {
        if (event._tag !== "Command" && event._tag !== "Expiry") return
        const client = event._tag === "Command" ? event.command.client : undefined
        for (const [entry, before] of all) {
          if (event._tag === "Expiry" || touches(event, before.key)) {
            all.set(entry, next(entry, before, client, event.at))
          }
        }
        if (!touches(event, model.input)) return
        const stream = view.stream(model.input)
        const pending = stream?.groups.get(model.group)?.pending
        const found = new Map<string, Given>()
        for (const [entry, fields] of stream?.entries ?? []) {
          const [delivery, name, before] = [pending?.get(entry), model.announcement(fields), all.get(entry)]
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
                until: lease === undefined ? -Infinity : endOf(key),
                since: event.at,
                hasLocked: lease === consumer,
                unlockedAt: -Infinity
              }
          )
        }
        all = found
      }
    }
  })
