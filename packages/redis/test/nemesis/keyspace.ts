/** Rebuilds the strings, streams and hashes that the checkers read, from the commands in MONITOR and from snapshots. */
import type { Snapshot } from "./observer.ts"

type Entry = readonly [id: string, fields: ReadonlyArray<string>]

const never = -Infinity

export interface Text {
  readonly value: string
  /** The latest and the earliest possible expiry. They differ because a server may count from the start of a script. */
  until: number
  earliest: number
}

/** The latest changes to a key. A snapshot that started before a change may lack it. */
interface Changes {
  /** When a command last set or deleted the whole value. */
  known: number
  expiry: { readonly at: number; readonly ends: Pick<Text, "until" | "earliest"> } | undefined
  readonly added: Array<{ readonly at: number; readonly entry: Entry; readonly hasId: boolean }>
}

const millisOf = (id: string) => Number(id.split("-")[0])

export class Keyspace {
  readonly strings = new Map<string, Text>()
  readonly streams = new Map<string, Array<Entry>>()
  readonly hashes = new Map<string, Map<string, string>>()
  private readonly checked: ReadonlySet<string>
  private readonly changes = new Map<string, Changes>()

  constructor(checked: ReadonlySet<string>) {
    this.checked = checked
  }

  private changesOf(key: string): Changes {
    const found = this.changes.get(key)
    if (found !== undefined) return found
    const changes: Changes = { known: never, expiry: undefined, added: [] }
    this.changes.set(key, changes)
    return changes
  }

  /** Applies a snapshot. Changes that were observed after its start win, because the snapshot may lack them. */
  restore({ since, streams, strings }: Snapshot): void {
    for (const [key, found] of strings) {
      const { expiry, known } = this.changesOf(key)
      if (known >= since) continue
      if (found === undefined) this.strings.delete(key)
      else this.strings.set(key, { ...found, ...expiry !== undefined && expiry.at >= since ? expiry.ends : {} })
    }
    for (const [key, read] of streams) {
      const { added, known } = this.changesOf(key)
      if (known >= since) continue
      const entries = [...read]
      const last = millisOf(entries.at(-1)?.[0] ?? "0-0")
      for (const { at, entry, hasId } of added) {
        if (at >= since && (!hasId || millisOf(entry[0]) > last)) entries.push(entry)
      }
      this.streams.set(key, entries)
    }
  }

  /** Applies a command. `begun` is when its script started, or when the command ran if it is not from a script. */
  apply(at: number, [name, key = "", ...rest]: ReadonlyArray<string>, begun: number): void {
    switch (name) {
      case "SET": {
        if (!this.checked.has(key)) return
        const px = rest.findIndex((option) => option.toUpperCase() === "PX")
        const millis = px > 0 ? Number(rest[px + 1]) : Infinity
        this.strings.set(key, { value: rest[0]!, until: at + millis, earliest: begun + millis })
        this.changesOf(key).known = at
        return
      }
      case "PEXPIRE": {
        if (!this.checked.has(key)) return
        const ends = { until: at + Number(rest[0]), earliest: begun + Number(rest[0]) }
        this.changesOf(key).expiry = { at, ends }
        const found = this.strings.get(key)
        if (this.live(begun, key) !== undefined) Object.assign(found!, ends)
        return
      }
      case "DEL": {
        for (const one of [key, ...rest]) {
          this.strings.delete(one)
          this.streams.delete(one)
          this.hashes.delete(one)
          if (this.checked.has(one)) this.changesOf(one).known = at
        }
        return
      }
      case "HSET": {
        if (!this.checked.has(key)) return
        const fields = this.hashes.get(key) ?? new Map<string, string>()
        this.hashes.set(key, fields)
        for (let i = 0; i < rest.length; i += 2) fields.set(rest[i]!, rest[i + 1]!)
        return
      }
      case "HINCRBY": {
        const [field = "", by = ""] = rest
        const value = Number(this.hashes.get(key)?.get(field) ?? 0) + Number(by)
        return this.apply(at, ["HSET", key, field, String(value)], begun)
      }
      case "HDEL": {
        for (const field of rest) this.hashes.get(key)?.delete(field)
        return
      }
      case "XADD": {
        if (!this.checked.has(key)) return
        const start = rest.findIndex((text) => text === "*" || /^\d+-\d+$/.test(text))
        const hasId = rest[start] !== "*"
        const entries = this.streams.get(key) ?? []
        const last = millisOf(entries.at(-1)?.[0] ?? "0-0")
        const id = hasId ? rest[start]! : `${last + 1}-0`
        const entry: Entry = [id, rest.slice(start + 1)]
        this.changesOf(key).added.push({ at, entry, hasId })
        // The server refused the entry, because its id is not the largest
        if (millisOf(id) <= last) return
        entries.push(entry)
        this.streams.set(key, entries)
      }
    }
  }

  /** Returns an unexpired string. Adds a millisecond to its expiry, because servers count in whole milliseconds. */
  live(at: number, key: string): Readonly<Text> | undefined {
    const found = this.strings.get(key)
    return found !== undefined && at < found.until + 1 ? found : undefined
  }
}
