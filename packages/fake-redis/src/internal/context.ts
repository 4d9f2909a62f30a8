/** The context in which a command runs: the client, its current database, the time, and methods that report changes. */
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
  /** Server time in milliseconds. It stands still while the command runs. */
  readonly now: number
  /** Whether the command runs in a transaction or a script, where commands do not block. */
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

  /** Aborts transactions that watch the key, and publishes a keyspace event. */
  changed(key: string, kind: EventClass, event: string, db = this.db): void {
    this.server.touch(db, key)
    this.server.notify(db, key, kind, event)
  }

  /** Removes a key whose collection has become empty, and publishes its removal. */
  dropIfEmpty(key: string, entry: Entry): boolean {
    if (!isEmpty(entry)) return false
    this.db.remove(key)
    this.server.notify(this.db, key, "g", "del")
    return true
  }
}
