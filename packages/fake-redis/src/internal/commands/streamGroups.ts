/**
 * XGROUP: creates, moves and removes consumer groups and consumers. Each change publishes a keyspace event, but
 * transactions that watch the key are aborted only if MKSTREAM creates the stream.
 */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { Consumer, Group, StreamId } from "../data/stream.ts"
import { makeStream, MAX_ID, MIN_ID, parseId, removePending } from "../data/stream.ts"
import { integer } from "../numbers.ts"
import { fail, OK } from "../reply.ts"

const NO_KEY = "ERR The XGROUP subcommand requires the key to exist. " +
  "Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically."

const noGroup = (key: string, group: string): never =>
  fail(`NOGROUP No such consumer group '${group}' for key name '${key}'`)

const announce = (context: Context, key: string, event: string): void =>
  context.server.notify(context.db, key, "t", event)

const createConsumer = (context: Context, group: Group, key: string, name: string): Consumer => {
  const consumer: Consumer = { name, seenAt: context.now, pending: 0 }
  group.consumers.set(name, consumer)
  announce(context, key, "xgroup-createconsumer")
  return consumer
}

/** Returns the consumer with this name, creating it if necessary, and resets its idle time. */
export const consumerOf = (context: Context, group: Group, key: string, name: string): Consumer => {
  const consumer = group.consumers.get(name) ?? createConsumer(context, group, key, name)
  consumer.seenAt = context.now
  return consumer
}

const rangeId = (text: string): StreamId => text === "-" ? MIN_ID : text === "+" ? MAX_ID : parseId(text, 0n)

const subcommandError = (args: ReadonlyArray<string>): never =>
  fail(`ERR unknown subcommand or wrong number of arguments for '${args[1]!}'. Try ${args[0]!.toUpperCase()} HELP.`)

const xgroup: Handler = (context, args) => {
  const sub = args[1]!.toLowerCase()
  const key = args[2]!
  const name = args[3]!
  let make = false
  let entriesRead = -1
  if (sub === "create" || sub === "setid") {
    for (let i = 5; i < args.length; i++) {
      const option = args[i]!.toLowerCase()
      if (sub === "create" && option === "mkstream") make = true
      else if (option === "entriesread" && i + 1 < args.length) {
        entriesRead = integer(args[++i]!)
        if (entriesRead < 0 && entriesRead !== -1) return fail("ERR value for ENTRIESREAD must be positive or -1")
      } else return subcommandError(args)
    }
  }
  const entry = context.db.writeAs(key, "stream")
  if (entry === undefined && !make) return fail(NO_KEY)
  const stream = entry?.value
  const group = stream?.groups.get(name)
  if (sub !== "create" && sub !== "destroy" && group === undefined) return noGroup(key, name)
  switch (sub) {
    case "create": {
      const id = args[4] === "$" ? stream?.lastId ?? MIN_ID : rangeId(args[4]!)
      const target = stream ?? context.db.put(key, "stream", makeStream()).value
      if (group !== undefined) return fail("BUSYGROUP Consumer Group name already exists")
      target.groups.set(name, { name, lastId: id, entriesRead, consumers: new Map(), pending: [] })
      if (stream === undefined) context.server.touch(context.db, key)
      announce(context, key, "xgroup-create")
      return OK
    }
    case "setid": {
      group!.lastId = args[4] === "$" ? stream!.lastId : rangeId(args[4]!)
      group!.entriesRead = entriesRead
      announce(context, key, "xgroup-setid")
      return OK
    }
    case "destroy": {
      if (group === undefined) return 0
      stream!.groups.delete(name)
      announce(context, key, "xgroup-destroy")
      context.server.blocked.mark(context.db, key)
      return 1
    }
    case "createconsumer": {
      if (group!.consumers.has(args[4]!)) return 0
      createConsumer(context, group!, key, args[4]!)
      return 1
    }
    default: {
      const consumer = group!.consumers.get(args[4]!)
      if (consumer === undefined) return 0
      const count = consumer.pending
      for (const item of group!.pending.filter((pending) => pending.consumer === consumer)) {
        removePending(group!, item)
      }
      group!.consumers.delete(args[4]!)
      announce(context, key, "xgroup-delconsumer")
      return count
    }
  }
}

export const streamGroupCommands: ReadonlyArray<Command> = [
  define("xgroup", xgroup)
]
