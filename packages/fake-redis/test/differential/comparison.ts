/**
 * Compares the results of two servers: normalizes what may differ, decides which results are equal, and prints them.
 */
import type { Reply } from "../../src/internal/session.ts"
import { ReplyError } from "../../src/internal/session.ts"
import type { Result } from "./resp.ts"
import { Refusal } from "./resp.ts"

/** A time in a result. It varies a little because it depends on when the command arrived. */
class Time {
  readonly value: number
  readonly unit: "s" | "ms"
  constructor(value: number, unit: "s" | "ms") {
    this.value = value
    this.unit = unit
  }
}

/**
 * A normalized result, without details that may differ: the order of sets, the shape of radix trees, an error's
 * position in a script.
 */
export type Normal = string | number | null | Refusal | Time | ReadonlyArray<Normal>

export const isList = <A>(value: A): value is Extract<A, ReadonlyArray<unknown>> => Array.isArray(value)

export const toResult = (reply: Reply): Result => {
  if (reply instanceof ReplyError) return new Refusal(reply.message)
  return isList(reply) ? reply.map(toResult) : reply
}

/** Formats a result as tests expect it. Errors begin with a dash. */
export const toPlain = (result: Result): unknown => {
  if (result instanceof Refusal) return `-${result.text}`
  return isList(result) ? result.map(toPlain) : result
}

const UNORDERED: ReadonlySet<string> = new Set([
  "SMEMBERS",
  "SINTER",
  "SUNION",
  "SDIFF",
  "KEYS",
  "HKEYS",
  "HVALS",
  "SPOP",
  "SRANDMEMBER",
  "SSCAN"
])

const TIMES: Readonly<Record<string, "s" | "ms">> = { TTL: "s", EXPIRETIME: "s", PTTL: "ms", PEXPIRETIME: "ms" }

/** The ids that XADD generates for `*`. */
const AUTOMATIC_ID = /^[0-9]{13}-0$/

const sorted = (items: ReadonlyArray<Normal>): ReadonlyArray<Normal> =>
  items.slice().sort((a, b) => JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

const pairs = (items: ReadonlyArray<Normal>): ReadonlyArray<Normal> =>
  Array.from({ length: items.length / 2 }, (_, i) => [items[2 * i]!, items[2 * i + 1]!])

const timed = (item: Normal, unit: "s" | "ms" = "ms"): Normal =>
  typeof item === "number" && item >= 0 ? new Time(item, unit) : item

/** Normalizes pending entries: `[id, consumer, time, deliveries]`, or the same without the consumer. */
const pendingRows = (result: Normal): Normal =>
  isList(result)
    ? result.map((row) => isList(row) ? row.map((item, at) => at === row.length - 2 ? timed(item) : item) : row)
    : result

/** Normalizes alternating names and values, as in XINFO. */
const fields = (result: Normal): Normal => {
  if (!isList(result)) return result
  if (isList(result[0] ?? null)) return result.map(fields)
  return result.map((value, at) => {
    switch (at % 2 === 0 ? undefined : result[at - 1]) {
      case "radix-tree-keys":
      case "radix-tree-nodes":
        return 0
      case "idle":
      case "seen-time":
        return timed(value)
      case "pending":
        return pendingRows(value)
      case "groups":
      case "consumers":
        return fields(value)
      default:
        return value
    }
  })
}

/** Normalizes the result of the `name` command. */
export const normalise = (name: string, result: Result): Normal => {
  if (result instanceof Refusal) return new Refusal(result.text.replace(/ script: [0-9a-f]{40}, on .*$/, "").trim())
  const unit = TIMES[name]
  if (unit !== undefined) return timed(result, unit)
  if (name === "XADD" && typeof result === "string" && AUTOMATIC_ID.test(result)) return timed(parseInt(result, 10))
  if (!isList(result)) return result
  switch (name) {
    case "HGETALL":
      return sorted(pairs(result))
    case "HSCAN":
    case "ZSCAN":
      return isList(result[1]!) ? [result[0]!, sorted(pairs(result[1]))] : result
    case "SCAN":
    case "SSCAN":
      return isList(result[1]!) ? [result[0]!, sorted(result[1])] : result
    case "XPENDING":
      return isList(result[0] ?? null) ? pendingRows(result) : result
    case "XINFO":
      return fields(result)
    default:
      return UNORDERED.has(name) ? sorted(result) : result
  }
}

/** Whether two results are equal. Times may differ by `tolerance` milliseconds. */
export const same = (real: Normal, fake: Normal, tolerance: number): boolean => {
  if (real instanceof Refusal) return fake instanceof Refusal && real.text === fake.text
  if (real instanceof Time) {
    if (!(fake instanceof Time)) return false
    // Above 2^53 the engine rounds times to the nearest double.
    const rounding = real.value * Number.EPSILON
    return Math.abs(real.value - fake.value) <= (real.unit === "s" ? 1 : tolerance) + rounding
  }
  if (isList(real)) {
    return isList(fake) && real.length === fake.length &&
      real.every((item, index) => same(item, fake[index]!, tolerance))
  }
  return real === fake
}

export const show = (result: Normal): string => {
  if (result instanceof Refusal) return `(error) ${result.text}`
  if (result instanceof Time) return String(result.value)
  return isList(result) ? `[${result.map(show).join(", ")}]` : JSON.stringify(result)
}
