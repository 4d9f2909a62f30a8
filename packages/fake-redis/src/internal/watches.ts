/**
 * Tracks which keys clients watch. WATCH registers a key, and a change to the key marks the client as `touched`. If the
 * client is marked, EXEC returns nil and runs nothing. UNWATCH, EXEC and DISCARD end the watches and remove the mark.
 */
import type { Client } from "./client.ts"
import type { Server } from "./server.ts"

const NONE: ReadonlySet<Client> = new Set()

const watchersOf = (server: Server, db: number, key: string): ReadonlySet<Client> =>
  server.watchers.get(`${db} ${key}`) ?? NONE

/** `expired` says whether the key has already expired but is not removed yet. */
export const watch = (server: Server, client: Client, db: number, key: string, expired: boolean): void => {
  if (client.watched.some((item) => item.db === db && item.key === key)) return
  client.watched.push({ db, key, expired })
  const slot = `${db} ${key}`
  const all = server.watchers.get(slot)
  if (all === undefined) server.watchers.set(slot, new Set([client]))
  else all.add(client)
}

export const unwatchAll = (server: Server, client: Client): void => {
  for (const { db, key } of client.watched) {
    const slot = `${db} ${key}`
    const all = server.watchers.get(slot)
    all?.delete(client)
    if (all?.size === 0) server.watchers.delete(slot)
  }
  client.watched = []
  client.touched = false
}

/** Ends a client's transaction and watches. */
export const leaveMulti = (server: Server, client: Client): void => {
  client.queue = undefined
  client.queueFailed = false
  unwatchAll(server, client)
}

/**
 * Marks the clients that watch a changed key. The expiry of a key that had already expired at WATCH is not a change.
 */
export const touchWatchers = (server: Server, db: number, key: string, byExpiry: boolean): void => {
  if (server.watchers.size === 0) return
  for (const client of watchersOf(server, db, key)) {
    const watched = client.watched.find((item) => item.db === db && item.key === key)
    if (watched?.expired === true && byExpiry) {
      watched.expired = false
      continue
    }
    client.touched = true
  }
}
