/**
 * MULTI, EXEC and optimistic locking.
 */
import { BLOCKED, define } from "../commandTable.ts"
import type { Value } from "../reply.ts"
import { fail, OK } from "../reply.ts"
import { RunContext } from "../runContext.ts"
import { leaveMulti, unwatchAll, watch } from "../watches.ts"

define("multi", 1, "sml", ({ client }) => {
  if (client.queue !== undefined) return fail("ERR MULTI calls can not be nested")
  client.queue = []
  client.queueFailed = false
  return OK
})

define("discard", 1, "sml", ({ client, server }) => {
  if (client.queue === undefined) return fail("ERR DISCARD without MULTI")
  leaveMulti(server, client)
  return OK
})

define("watch", -2, "sml", ({ client, db, server }, args) => {
  if (client.queue !== undefined) return fail("ERR WATCH inside MULTI is not allowed")
  if (client.touched) return OK
  for (const key of args.slice(1)) {
    const entry = db.entries.get(key)
    watch(server, client, db.index, key, entry !== undefined && db.isExpired(entry))
  }
  return OK
})

define("unwatch", 1, "sl", ({ client, server }) => {
  unwatchAll(server, client)
  return OK
})

define("exec", 1, "sml", ({ client, server }) => {
  const { queue } = client
  if (queue === undefined) return fail("ERR EXEC without MULTI")
  for (const { db, expired, key } of client.watched) {
    const entry = server.dbs[db]!.entries.get(key)
    if (!expired && entry !== undefined && server.dbs[db]!.isExpired(entry)) client.touched = true
  }
  const failed = client.queueFailed
  const { touched } = client
  leaveMulti(server, client)
  if (failed) return fail("EXECABORT Transaction discarded because of previous errors.")
  if (touched) return null
  const replies: Array<Value> = []
  for (const { args, command } of queue) {
    const value = server.call(new RunContext(server, client, true, false), command, args)
    replies.push(value === BLOCKED ? null : value)
  }
  return replies
})
