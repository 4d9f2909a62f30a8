/** HDEL, SREM and ZREM, which remove members, and the key once it is empty. */
import type { Handler } from "../command.ts"
import type { Entry } from "../data/values.ts"

const kinds = { hash: "h", set: "s", zset: "z" } as const

export const removingFrom = (type: keyof typeof kinds, event: string): Handler => (context, args) => {
  const key = args[1]!
  const entry = context.db.writeAs(key, type)
  if (entry === undefined) return 0
  let count = 0
  for (let i = 2; i < args.length; i++) if (entry.value.delete(args[i]!)) count++
  if (count > 0) {
    context.changed(key, kinds[type], event)
    context.dropIfEmpty(key, entry as Entry)
  }
  return count
}
