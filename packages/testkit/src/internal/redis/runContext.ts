/**
 * What a command is run with: the client's database as of now, frozen time, and where changes are announced.
 */
import type { Client } from "./client.ts"
import type { Context } from "./command.ts"
import type { Entry } from "./data/values.ts"
import { isEmpty } from "./data/values.ts"
import type { Keyspace } from "./keyspace.ts"
import type { EventClass } from "./notifications.ts"
import type { Server } from "./server.ts"

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
