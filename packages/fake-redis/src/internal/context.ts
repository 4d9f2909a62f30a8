/**
 * What a command runs with: the client's current database, frozen time, and where changes are announced.
 */
import type { Client } from "./client.ts"
import type { Entry } from "./data/values.ts"
import { isEmpty } from "./data/values.ts"
import type { Keyspace } from "./keyspace.ts"
import type { EventClass } from "./notifications.ts"
import type { Server } from "./server.ts"

export class Context {
  readonly server: Server
  readonly client: Client
  readonly db: Keyspace
  /** Server time in ms, frozen. */
  readonly now: number
  /** Within MULTI or a script, where nothing blocks. */
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

  /** Notifies watchers and subscribers that a key has changed. */
  changed(key: string, kind: EventClass, event: string, db = this.db): void {
    this.server.touch(db, key)
    this.server.notify(db, key, kind, event)
  }

  /** Removes a key whose collection has become empty, and announces that. */
  dropIfEmpty(key: string, entry: Entry): boolean {
    if (!isEmpty(entry)) return false
    this.db.remove(key)
    this.server.notify(this.db, key, "g", "del")
    return true
  }
}
