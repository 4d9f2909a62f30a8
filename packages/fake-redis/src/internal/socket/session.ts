/**
 * One client over a socket: bytes in, commands to the server in order, bytes out. The code that reads and writes the
 * socket asks for the output, and stops reading while there is no room.
 */
import { Buffer } from "node:buffer"
import { ProtocolError, RequestParser } from "./requestParser.ts"

/** The number of bytes of output, and of requests without a reply, at which a client must wait. */
const fullOutput = 1024 * 1024
const manyRequests = 1024
/** As in Redis, a client that must wait is disconnected if it sends more input than this. */
const longestInput = 1024 * 1024 * 1024
/** What a browser sends first: Redis ends such a connection without a reply. */
const foreign: ReadonlySet<string> = new Set(["post", "host:"])

/** How the session reaches the server, in binary strings. */
export interface Wire {
  readonly send: (args: ReadonlyArray<string>, reply: (bytes: string) => void) => void
  readonly close: () => void
}

/** What the server does to the connection without a request. */
export interface Receiver {
  readonly pushed: (bytes: string) => void
  readonly ended: () => void
}

export class SocketSession {
  /** The connection ends once the output is written. */
  isOver = false
  private output = ""
  private unanswered = 0
  private received = 0
  private problem: ProtocolError | undefined
  private isParsing = false
  private readonly parser = new RequestParser()
  private readonly onChange: () => void
  private readonly wire: Wire

  /** `onChange` is called when `hasWork` or `hasRoom` may have changed. */
  constructor(connect: (receiver: Receiver) => Wire, onChange: () => void) {
    this.onChange = onChange
    this.wire = connect({ pushed: (bytes) => this.write(bytes), ended: () => this.end() })
  }

  /** Whether there is output to write, or a connection to end. */
  get hasWork(): boolean {
    return this.output !== "" || this.isOver
  }

  /** Whether the client may send more. */
  get hasRoom(): boolean {
    return this.output.length < fullOutput || this.isOver
  }

  receive(chunk: Uint8Array): void {
    this.received += chunk.byteLength
    this.parser.feed(chunk)
    this.run()
    if (this.received > longestInput) this.end()
  }

  /** The bytes to write, `undefined` if there are none. Runs requests that had to wait. */
  take(): Uint8Array | undefined {
    this.run()
    const { output } = this
    this.output = ""
    this.onChange()
    return output === "" ? undefined : Buffer.from(output, "latin1")
  }

  close(): void {
    this.isOver = true
    this.wire.close()
  }

  private get mustWait(): boolean {
    return this.output.length >= fullOutput || this.unanswered >= manyRequests
  }

  private run(): void {
    // A reply within a command must not start the next one
    if (this.isParsing) return
    this.isParsing = true
    while (!this.isOver && this.problem === undefined && !this.mustWait) {
      const request = this.parser.next()
      if (request === undefined) {
        this.received = 0
        break
      }
      if (request instanceof ProtocolError) this.problem = request
      else this.send(request)
    }
    this.isParsing = false
    if (this.problem !== undefined && this.unanswered === 0 && !this.isOver) {
      this.output += `-ERR ${this.problem.message}\r\n`
      this.isOver = true
    }
    this.onChange()
  }

  private send(request: ReadonlyArray<string>): void {
    if (foreign.has(request[0]!.toLowerCase())) return this.end()
    this.unanswered++
    this.wire.send(request, (reply) => {
      this.unanswered--
      this.write(reply)
      this.run()
    })
  }

  private write(bytes: string): void {
    if (this.isOver) return
    this.output += bytes
    // Replies to commands that arrived together leave together
    if (!this.isParsing) this.onChange()
  }

  private end(): void {
    this.isOver = true
    this.onChange()
  }
}
