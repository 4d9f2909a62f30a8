/**
 * The radix tree nodes in which Redis stores a stream's entries. A node is full at `stream-node-max-entries` entries or
 * `stream-node-max-bytes` bytes, measured as in Redis's listpack. Trimming with `~` removes only whole nodes.
 */
import type { Config } from "../config.ts"
import { MAX_INT64, MIN_INT64, parseBigInt } from "../numbers.ts"

export interface StreamNode {
  /** The number of remaining entries, and of entries deleted from the middle that still take up space. */
  live: number
  deleted: number
  /** The size of the listpack without its two counters. */
  bytes: number
  /** The first entry. Later entries store their ids relative to it, and omit field names that equal its own. */
  readonly ms: bigint
  readonly seq: bigint
  readonly fields: ReadonlyArray<string>
}

/** The size of an empty listpack: a six-byte header and a one-byte end. */
const EMPTY = 7
const LARGEST_NODE = 2 ** 30

/** Each element is followed by its length, in groups of seven bits. */
const withLength = (size: number): number =>
  size + (size <= 127 ? 1 : size < 16383 ? 2 : size < 2097151 ? 3 : size < 268435455 ? 4 : 5)

const integerSize = (value: bigint): number => {
  if (value >= 0n && value <= 127n) return withLength(1)
  const magnitude = value < 0n ? -value - 1n : value
  return withLength(
    magnitude < 1n << 12n ? 2 : magnitude < 1n << 15n ? 3 : magnitude < 1n << 23n ? 4 : magnitude < 1n << 31n ? 5 : 9
  )
}

const textSize = (text: string): number => {
  const integer = parseBigInt(text)
  if (integer !== undefined) return integerSize(integer)
  return withLength((text.length < 64 ? 1 : text.length < 4096 ? 2 : 5) + text.length)
}

const textsSize = (texts: ReadonlyArray<string>): number => texts.reduce((size, text) => size + textSize(text), 0)

const counters = ({ deleted, live }: StreamNode): number => integerSize(BigInt(live)) + integerSize(BigInt(deleted))

const asInt64 = (value: bigint): bigint => value > MAX_INT64 || value < MIN_INT64 ? BigInt.asIntN(64, value) : value

/** Adds an entry to the last node, or to a new node if the last one is full. `pairs` alternates fields and values. */
export const appendToNodes = (
  nodes: Array<StreamNode>,
  id: { readonly ms: bigint; readonly seq: bigint },
  pairs: ReadonlyArray<string>,
  config: Config
): void => {
  const fields = pairs.filter((_, i) => i % 2 === 0)
  const values = pairs.filter((_, i) => i % 2 === 1)
  let node = nodes.at(-1)
  if (node !== undefined) {
    const maxBytes = config.number("stream-node-max-bytes")
    const maxEntries = config.number("stream-node-max-entries")
    const bytes = node.bytes + counters(node) + pairs.reduce((size, text) => size + text.length, 0)
    const isFull = bytes >= (maxBytes === 0 ? LARGEST_NODE : Math.min(maxBytes, LARGEST_NODE)) ||
      (maxEntries > 0 && node.live + node.deleted >= maxEntries)
    if (isFull) node = undefined
  }
  const number = integerSize(BigInt(fields.length))
  if (node === undefined) {
    node = { live: 0, deleted: 0, bytes: EMPTY + number + textsSize(fields) + integerSize(0n), ...id, fields }
    nodes.push(node)
  }
  const { fields: known } = node
  const same = fields.length === known.length && fields.every((field, i) => field === known[i])
  node.bytes += integerSize(same ? 2n : 0n) + integerSize(asInt64(id.ms - node.ms)) +
    integerSize(asInt64(id.seq - node.seq)) + textsSize(values) +
    (same ? 0 : number + textsSize(fields)) +
    integerSize(BigInt(same ? values.length + 3 : pairs.length + 4))
  node.live++
}

/** Records that an entry was deleted from the middle. `at` is its index among the entries of all nodes. */
export const deleteFromNodes = (nodes: Array<StreamNode>, at: number): void => {
  let i = 0
  for (; at >= nodes[i]!.live; i++) at -= nodes[i]!.live
  const node = nodes[i]!
  node.live--
  node.deleted++
  if (node.live === 0) nodes.splice(i, 1)
}

/** Records that the first `count` entries were trimmed. */
export const trimNodes = (nodes: Array<StreamNode>, count: number): void => {
  while (count > 0) {
    const node = nodes[0]!
    const gone = Math.min(count, node.live)
    count -= gone
    node.live -= gone
    node.deleted += gone
    if (node.live === 0) nodes.shift()
  }
}
