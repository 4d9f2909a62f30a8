/** PFADD, PFCOUNT and PFMERGE: count distinct elements approximately. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { HyperLogLog } from "../data/hyperLogLog.ts"
import {
  addElement,
  decodeHyperLogLog,
  emptyHyperLogLog,
  encodeHyperLogLog,
  estimate,
  mergeInto
} from "../data/hyperLogLog.ts"
import type { Entry } from "../data/values.ts"
import { fail, OK } from "../reply.ts"

const decode = (entry: Entry<"string"> | undefined): HyperLogLog | undefined => {
  if (entry === undefined) return undefined
  const log = decodeHyperLogLog(entry.value)
  if (log === undefined) return fail("WRONGTYPE Key is not a valid HyperLogLog string value.")
  return log === "corrupt" ? fail("INVALIDOBJ Corrupted HLL object detected") : log
}

const save = (context: Context, key: string, log: HyperLogLog): void => {
  const text = encodeHyperLogLog(log, context.server.config.number("hll-sparse-max-bytes"))
  const entry = context.db.writeAs(key, "string")
  if (entry === undefined) context.db.put(key, "string", text)
  else entry.value = text
}

const pfadd: Handler = (context, args) => {
  const key = args[1]!
  const known = decode(context.db.writeAs(key, "string"))
  const log = known ?? emptyHyperLogLog()
  let isChanged = known === undefined
  for (const element of args.slice(2)) if (addElement(log, element)) isChanged = true
  if (!isChanged) return 0
  log.isCounted = false
  save(context, key, log)
  context.changed(key, "$", "pfadd")
  return 1
}

const pfcount: Handler = (context, args) => {
  if (args.length > 2) {
    const all = emptyHyperLogLog()
    for (const key of args.slice(1)) {
      const log = decode(context.db.readAs(key, "string"))
      if (log !== undefined) mergeInto(all, log)
    }
    return estimate(all)
  }
  const key = args[1]!
  const log = decode(context.db.readAs(key, "string"))
  if (log === undefined) return 0
  if (!log.isCounted) {
    log.cardinality = estimate(log)
    log.isCounted = true
    save(context, key, log)
    context.server.touch(context.db, key)
  }
  return log.cardinality
}

const pfmerge: Handler = (context, args) => {
  const logs = args.slice(1).map((key) => decode(context.db.readAs(key, "string")))
  const merged = logs[0] ?? emptyHyperLogLog()
  for (const log of logs) if (log !== undefined) mergeInto(merged, log)
  merged.isCounted = false
  save(context, args[1]!, merged)
  context.changed(args[1]!, "$", "pfadd")
  return OK
}

export const hyperLogLogCommands: ReadonlyArray<Command> = [
  define("pfadd", pfadd),
  define("pfcount", pfcount),
  define("pfmerge", pfmerge)
]
