/** MULTI, EXEC and DISCARD, and optimistic locking with WATCH. */
import { denialInTransaction } from "../aclLog.ts"
import type { Command, Handler } from "../command.ts"
import { BLOCKED, define } from "../command.ts"
import { Context } from "../context.ts"
import type { Value } from "../reply.ts"
import { Fail, fail, Interleaved, OK } from "../reply.ts"
import type { BinaryPush } from "../session.ts"
import { shape } from "../shapes.ts"
import { leaveMulti, unwatchAll, watch } from "../watches.ts"

const multi: Handler = ({ client }) => {
  if (client.queue !== undefined) return fail("ERR MULTI calls can not be nested")
  client.queue = []
  client.queueFailed = false
  return OK
}

const discard: Handler = ({ client, server }) => {
  if (client.queue === undefined) return fail("ERR DISCARD without MULTI")
  leaveMulti(server, client)
  return OK
}

const runWatch: Handler = ({ client, db, server }, args) => {
  if (client.queue !== undefined) return fail("ERR WATCH inside MULTI is not allowed")
  if (client.touched) return OK
  for (const key of args.slice(1)) {
    const entry = db.entries.get(key)
    watch(server, client, db.index, key, entry !== undefined && db.isExpired(entry))
  }
  return OK
}

const unwatch: Handler = ({ client, server }) => {
  unwatchAll(server, client)
  return OK
}

const exec: Handler = ({ client, server }) => {
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
  for (const { args, command, spec } of queue) {
    const denial = client.user?.denies(spec, args)
    if (denial !== undefined) {
      server.aclLog.add(server, client, denial, "multi")
      replies.push(new Fail(denialInTransaction(denial)))
      continue
    }
    // If a command sends messages to its own client, they go between the replies
    const pushes: Array<BinaryPush> = []
    if (client.wire && client.protocol === 3) client.interleaved = pushes
    const value = server.call(new Context(server, client, true, false), command, spec, args)
    client.interleaved = undefined
    const reply = value === BLOCKED ? null : value
    const shaped = client.wire ? shape(client.protocol, args, reply) : reply
    replies.push(pushes.length > 0 ? new Interleaved(pushes, shaped) : shaped)
  }
  return replies
}

export const transactionCommands: ReadonlyArray<Command> = [
  define("multi", multi),
  define("discard", discard),
  define("watch", runWatch),
  define("unwatch", unwatch),
  define("exec", exec)
]
