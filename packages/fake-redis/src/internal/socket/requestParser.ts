/**
 * Parses requests from a stream of bytes: lists of bulk strings, and inline commands. Limits and errors are Redis's.
 */
import { Buffer } from "node:buffer"
import { splitInline } from "./inline.ts"

/** The maximum length in bytes of a line: an inline command or a count. */
const longestLine = 64 * 1024
const longestBulk = 512 * 1024 * 1024
const largestCount = 2 ** 31 - 1

export class ProtocolError {
  readonly message: string
  constructor(message: string) {
    this.message = `Protocol error: ${message}`
  }
}

const CR = 13
const LF = 10
const DOLLAR = 36
const STAR = 42

const decimal = (text: string): number | undefined => /^(?:0|-?[1-9][0-9]{0,18})$/.test(text) ? Number(text) : undefined

/** Up to this length, a loop is faster than calling into Node. */
const shortText = 24

const textOf = (buffer: Buffer, start: number, end: number): string => {
  if (end - start > shortText) return buffer.toString("latin1", start, end)
  let text = ""
  for (let at = start; at < end; at++) text += String.fromCharCode(buffer[at]!)
  return text
}

export class RequestParser {
  private buffer: Buffer = Buffer.alloc(0)
  private chunks: Array<Buffer> = []
  private at = 0
  /** The number of bytes needed before parsing can continue. */
  private needed = 0
  private arrived = 0
  private args: Array<string> = []
  private missing = 0
  private bulk = -1

  feed(chunk: Uint8Array): void {
    this.chunks.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
    this.arrived += chunk.byteLength
  }

  /** Returns the next request, or `undefined` until more bytes arrive. */
  next(): ReadonlyArray<string> | ProtocolError | undefined {
    if (this.arrived < this.needed) return undefined
    if (this.chunks.length > 0) {
      const rest = this.buffer.subarray(this.at)
      this.buffer = rest.length === 0 && this.chunks.length === 1
        ? this.chunks[0]!
        : Buffer.concat([rest, ...this.chunks])
      this.at = 0
      this.chunks = []
    }
    const request = this.parse()
    if (request !== undefined) this.needed = 0
    this.arrived = this.buffer.length - this.at
    return request
  }

  private parse(): ReadonlyArray<string> | ProtocolError | undefined {
    for (;;) {
      if (this.missing === 0) {
        if (this.at >= this.buffer.length) return undefined
        if (this.buffer[this.at] !== STAR) {
          const line = this.inline()
          if (line === undefined || line instanceof ProtocolError || line.length > 0) return line
          continue
        }
        const count = this.count()
        if (typeof count !== "number") return count
        if (count <= 0) continue
        this.missing = count
        this.args = []
      }
      const problem = this.bulks()
      if (problem !== undefined) return problem
      if (this.missing > 0) return undefined
      return this.args
    }
  }

  private inline(): ReadonlyArray<string> | ProtocolError | undefined {
    const end = this.buffer.indexOf(LF, this.at)
    if (end < 0) {
      return this.buffer.length - this.at > longestLine ? new ProtocolError("too big inline request") : undefined
    }
    const last = end > this.at && this.buffer[end - 1] === CR ? end - 1 : end
    const words = splitInline(this.buffer.toString("latin1", this.at, last))
    this.at = end + 1
    return words ?? new ProtocolError("unbalanced quotes in request")
  }

  private line(problem: string): string | ProtocolError | undefined {
    const end = this.buffer.indexOf(CR, this.at)
    if (end < 0) return this.buffer.length - this.at > longestLine ? new ProtocolError(problem) : undefined
    // The byte after CR is assumed to be LF, as in Redis
    if (end + 1 >= this.buffer.length) return undefined
    const text = textOf(this.buffer, this.at + 1, end)
    this.at = end + 2
    return text
  }

  private count(): number | ProtocolError | undefined {
    const line = this.line("too big mbulk count string")
    if (typeof line !== "string") return line
    const count = decimal(line)
    return count === undefined || count > largestCount ? new ProtocolError("invalid multibulk length") : count
  }

  /** Takes the bulk strings that have arrived. */
  private bulks(): ProtocolError | undefined {
    while (this.missing > 0) {
      if (this.bulk < 0) {
        if (this.at >= this.buffer.length) return undefined
        // Wait for the rest of an incomplete line
        const first = this.buffer[this.at]!
        const start = this.at
        const line = this.line("too big bulk count string")
        if (typeof line !== "string") return line
        if (first !== DOLLAR) {
          this.at = start
          return new ProtocolError(`expected '$', got '${String.fromCharCode(first)}'`)
        }
        const size = decimal(line)
        if (size === undefined || size < 0 || size > longestBulk) return new ProtocolError("invalid bulk length")
        this.bulk = size
      }
      const end = this.at + this.bulk
      if (end + 2 > this.buffer.length) {
        this.needed = this.bulk + 2
        return undefined
      }
      this.args.push(textOf(this.buffer, this.at, end))
      this.at = end + 2
      this.bulk = -1
      this.missing--
    }
    return undefined
  }
}
