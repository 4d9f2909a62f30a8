/** Counts the commands that a client sends: RESP arrays of bulk strings, which may be split into chunks anywhere. */

const newline = 0x0a
const star = 0x2a

export class RespCounter {
  private rest: Buffer = Buffer.alloc(0)
  private readonly onCommand: (parts: ReadonlyArray<Buffer>) => void

  constructor(onCommand: (parts: ReadonlyArray<Buffer>) => void) {
    this.onCommand = onCommand
  }

  push(chunk: Buffer): void {
    const data = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    let at = 0
    for (;;) {
      const end = this.command(data, at)
      if (end === undefined) break
      at = end
    }
    this.rest = data.subarray(at)
  }

  /** Returns the end of the command that begins at `start`, or undefined while the command is incomplete. */
  private command(data: Buffer, start: number): number | undefined {
    const line = data.indexOf(newline, start)
    if (line < 0) return undefined
    // A client may also send a command as a plain line of text
    if (data[start] !== star) {
      this.onCommand([data.subarray(start, line - 1)])
      return line + 1
    }
    const count = Number(data.toString("latin1", start + 1, line - 1))
    const parts: Array<Buffer> = []
    let at = line + 1
    for (let i = 0; i < count; i++) {
      const end = data.indexOf(newline, at)
      if (end < 0) return undefined
      const length = Number(data.toString("latin1", at + 1, end - 1))
      const next = end + 1 + length + 2
      if (next > data.length) return undefined
      parts.push(data.subarray(end + 1, end + 1 + length))
      at = next
    }
    this.onCommand(parts)
    return at
  }
}
