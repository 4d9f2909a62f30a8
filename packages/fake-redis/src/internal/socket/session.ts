/**
 * Handles one socket client's protocol: parses its bytes, sends commands to the server in order, and collects the bytes
 * of replies and pushes. The owner of the socket calls `receive` and `take`, and stops reading while `hasRoom` is
 * false.
 */
import { Buffer } from "node:buffer"
import { ProtocolError, RequestParser } from "./requestParser.ts"

/** Limits at which the client must wait: bytes of output, and requests without a reply. */
const fullOutput = 1024 * 1024
const manyRequests = 1024
/** A waiting client that sends more bytes than this is disconnected, as in Redis. */
const longestInput = 1024 * 1024 * 1024
/** The first words that a browser sends. Redis closes such a connection without a reply. */
const foreign: ReadonlySet<string> = new Set(["post", "host:"])

/** The session's connection to the server, in binary strings. */
export interface Wire {
  readonly send: (args: ReadonlyArray<string>, reply: (bytes: string) => void) => void
  readonly close: () => void
}

/** Unsolicited events from the server. */
export interface Receiver {
  readonly pushed: (bytes: string) => void
  readonly ended: () => void
}

export class SocketSession {
  /** Whether the connection ends once the output is written. */
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

  /** Whether there is output to write or a connection to close. */
  get hasWork(): boolean {
    return this.output !== "" || this.isOver
  }

  /** Whether the client may send more input. */
  get hasRoom(): boolean {
    return this.output.length < fullOutput || this.isOver
  }

  receive(chunk: Uint8Array): void {
    this.received += chunk.byteLength
    this.parser.feed(chunk)
    this.run()
    if (this.received > longestInput) this.end()
  }

  /** Runs requests that had to wait, and returns the bytes to write. Returns `undefined` if there are none. */
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
    // A command that replies synchronously must not start the next one
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
    // Send the replies to commands that arrived together in one write
    if (!this.isParsing) this.onChange()
  }

  private end(): void {
    this.isOver = true
    this.onChange()
  }
}
