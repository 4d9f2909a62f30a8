/** Refuses commands that would disrupt other users of a connection. Called by `commands` before it sends. */
import { DriverError } from "../driverError.ts"

export const subscribing = new Set([
  "SUBSCRIBE",
  "PSUBSCRIBE",
  "SSUBSCRIBE",
  "UNSUBSCRIBE",
  "PUNSUBSCRIBE",
  "SUNSUBSCRIBE"
])
const changingState = new Set([
  "QUIT",
  "MONITOR",
  "RESET",
  "HELLO",
  "AUTH",
  "SELECT",
  "READONLY",
  "READWRITE",
  "ASKING"
])
const replicating = new Set(["SYNC", "PSYNC", "REPLCONF"])
const ofTransactions = new Set(["MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH"])
const blocking = new Set([
  "BLPOP",
  "BRPOP",
  "BLMOVE",
  "BLMPOP",
  "BRPOPLPUSH",
  "BZPOPMIN",
  "BZPOPMAX",
  "BZMPOP",
  "WAIT",
  "WAITAOF"
])

/**
 * Returns whether a read has the BLOCK option. Skips the names of groups, consumers and streams, because they may equal
 * an option's name.
 */
const blocksRead = (args: ReadonlyArray<string>): boolean => {
  for (let at = 0; at < args.length; at++) {
    const option = String(args[at]).toUpperCase()
    if (option === "BLOCK") return true
    if (option === "STREAMS") return false
    if (option === "GROUP") at += 2
  }
  return false
}

/** Returns why a command must not be sent on the shared connection; undefined if it may. */
export const refusal = (command: string, args: ReadonlyArray<string>): string | undefined => {
  const sub = String(args[0]).toUpperCase()
  if (subscribing.has(command)) return "use Redis.subscribe, or Subscriber"
  if (changingState.has(command)) return "all callers share the connection: set it in the layer's options"
  if (replicating.has(command)) return "the server would treat this connection as a replica's"
  if (ofTransactions.has(command)) {
    return "other callers' commands would end up in the transaction: use Redis.reserve, or a script"
  }
  if (blocking.has(command) || (command.startsWith("XREAD") && blocksRead(args))) {
    return "it would block all other callers: use Redis.reserve"
  }
  return command === "CLIENT" && (sub === "REPLY" || sub === "TRACKING" || sub === "CACHING")
    ? "all callers share the connection: use Redis.reserve"
    : undefined
}

export const refused = (name: string, problem: string): DriverError =>
  new DriverError(`Redis.send refuses ${name}: ${problem}`, false)
