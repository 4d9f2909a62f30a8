/** Finds a sorted set's ranges by rank, by score, or by the members' bytes. */
import { integer, strtod } from "../numbers.ts"
import { fail } from "../reply.ts"
import type { Scored, SortedSet } from "./sortedSet.ts"

export type By = "rank" | "score" | "lex"

/** A range of indices in ascending order, excluding the end. */
export type Span = readonly [from: number, to: number]

const rankSpan = (length: number, first: number, last: number, reverse: boolean): Span => {
  let from = first < 0 ? first + length : first
  let to = last < 0 ? last + length : last
  if (from < 0) from = 0
  if (from > to || from >= length) return [0, 0]
  if (to >= length) to = length - 1
  return reverse ? [length - 1 - to, length - from] : [from, to + 1]
}

export interface Bounds {
  readonly before: (item: Scored) => boolean
  readonly within: (item: Scored) => boolean
}

const scoreBound = (text: string): { readonly value: number; readonly exclusive: boolean } => {
  const exclusive = text.startsWith("(")
  const value = strtod(exclusive ? text.slice(1) : text)
  return value === undefined ? fail("ERR min or max is not a float") : { value, exclusive }
}

const scoreBounds = (min: string, max: string): Bounds => {
  const low = scoreBound(min)
  const high = scoreBound(max)
  return {
    before: ({ score }) => low.exclusive ? score <= low.value : score < low.value,
    within: ({ score }) => high.exclusive ? score < high.value : score <= high.value
  }
}

const LEX = "ERR min or max not valid string range item"

const lexBound = (text: string): { readonly value: string; readonly exclusive: boolean; readonly infinite: number } => {
  if (text === "-" || text === "+") return { value: "", exclusive: true, infinite: text === "-" ? -1 : 1 }
  if (text[0] === "(" || text[0] === "[") return { value: text.slice(1), exclusive: text[0] === "(", infinite: 0 }
  return fail(LEX)
}

const lexBounds = (min: string, max: string): Bounds => {
  const low = lexBound(min)
  const high = lexBound(max)
  return {
    before: ({ member }) =>
      low.infinite !== 0 ? low.infinite > 0 : low.exclusive ? member <= low.value : member < low.value,
    within: ({ member }) =>
      high.infinite !== 0 ? high.infinite > 0 : high.exclusive ? member < high.value : member <= high.value
  }
}

/** Parses the bounds of a range by score or by member. Throws the error reply if they are invalid. */
export const parseBounds = (by: "score" | "lex", min: string, max: string): Bounds =>
  by === "score" ? scoreBounds(min, max) : lexBounds(min, max)

/**
 * Finds the range by walking from one end, as Redis does. If scores differ, a range by member may have gaps, and the
 * direction determines which members it contains.
 */
export const boundsSpan = (zset: SortedSet, { before, within }: Bounds, reverse = false): Span => {
  if (zset.size === 0 || before(zset.order[zset.size - 1]!) || !within(zset.order[0]!)) return [0, 0]
  if (reverse) {
    let end = zset.size
    while (end > 0 && !within(zset.order[end - 1]!)) end--
    let start = end
    while (start > 0 && !before(zset.order[start - 1]!)) start--
    return [start, end]
  }
  let from = 0
  while (from < zset.size && before(zset.order[from]!)) from++
  let to = from
  while (to < zset.size && within(zset.order[to]!)) to++
  return [from, to]
}

/**
 * Parses the bounds first, so that invalid ones fail even if the key does not exist. Returns a function that finds the
 * range.
 */
export const parseSpan = (by: By, min: string, max: string, reverse = false): (zset: SortedSet) => Span => {
  if (by === "rank") {
    const first = integer(min)
    const last = integer(max)
    return (zset) => rankSpan(zset.size, first, last, reverse)
  }
  const bounds = parseBounds(by, min, max)
  return (zset) => boundsSpan(zset, bounds, reverse)
}
