/** XREAD, and the arguments that it shares with XREADGROUP. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { StreamId } from "../data/stream.ts"
import { between, compareIds, MAX_ID, MIN_ID, nextId, parseId } from "../data/stream.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, syntaxError } from "../reply.ts"
import { entryReply, readStream } from "./streams.ts"

const blockMillis = (text: string): number => {
  const value = integer(text, "ERR timeout is not an integer or out of range")
  return value < 0 ? fail("ERR timeout is negative") : value
}

/** The arguments of XREAD and XREADGROUP. */
export const readArguments = (context: Context, args: ReadonlyArray<string>) => {
  const command = args[0]!.toLowerCase()
  let count = Infinity
  let block: number | undefined
  let noAck = false
  let group: { readonly name: string; readonly consumer: string } | undefined
  let at = args.length
  for (let i = 1; i < at; i++) {
    const option = args[i]!.toLowerCase()
    const more = args.length - 1 - i
    if (option === "block" && more > 0) {
      if (context.script) return fail(`ERR ${command} command is not allowed with BLOCK option from scripts`)
      block = blockMillis(args[++i]!)
    } else if (option === "count" && more > 0) {
      count = integer(args[++i]!)
      if (count <= 0) count = Infinity
    } else if (option === "streams" && more > 0) {
      at = i + 1
    } else if (command === "xread" && (option === "group" || option === "noack")) {
      return fail(
        `ERR The ${option.toUpperCase()} option is only supported by XREADGROUP. You called XREAD instead.`
      )
    } else if (option === "group" && more >= 2) {
      group = { name: args[++i]!, consumer: args[++i]! }
    } else if (option === "noack") noAck = true
    else return syntaxError()
  }
  const rest = args.length - at
  if (rest === 0) return syntaxError()
  if (rest % 2 !== 0) {
    return fail("ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.")
  }
  return { block, count, noAck, group, keys: args.slice(at, at + rest / 2), ids: args.slice(at + rest / 2) }
}

/** Waits for one of the streams. `block` is in milliseconds: 0 waits forever, and `undefined` does not wait. */
export const blockOnStreams = (
  context: Context,
  keys: ReadonlyArray<string>,
  block: number | undefined,
  wait: Pick<Parameters<Context["server"]["block"]>[1], "serve" | "vanished">
): Value =>
  block === undefined || context.atomic ? null : context.server.block(context, {
    ...wait,
    type: "stream",
    keys,
    deadline: block === 0 ? Infinity : context.server.micros + block * 1000,
    timedOut: null
  })

const xread: Handler = (context, args) => {
  const { block, count, ids, keys } = readArguments(context, args)
  const after = ids.map((text, index): StreamId => {
    const stream = readStream(context, keys[index]!)
    if (text === "$") return stream?.lastId ?? MIN_ID
    if (text === ">") {
      return fail(
        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
      )
    }
    return parseId(text, 0n)
  })
  const readFrom = (at: Context, key: string, index: number): readonly [string, ReadonlyArray<Value>] | undefined => {
    const stream = readStream(at, key)
    if (stream === undefined || compareIds(stream.lastId, after[index]!) <= 0) return undefined
    const from = nextId(after[index]!)
    const entries = from === undefined ? [] : between(stream, from, MAX_ID, count)
    return [key, entries.map(entryReply)]
  }
  const found = keys.map((key, index) => readFrom(context, key, index))
    .filter((value) => value !== undefined && value[1].length > 0) as ReadonlyArray<Value>
  if (found.length > 0) return found
  return blockOnStreams(context, keys, block, {
    // The list is empty if the command that added the entries has also removed them
    serve: (later, key) => {
      const value = readFrom(later, key, keys.indexOf(key))
      return value === undefined ? undefined : [value]
    }
  })
}

export const streamReadingCommands: ReadonlyArray<Command> = [
  define("xread", xread)
]
