/**
 * One client over a socket: bytes in, commands to the server in their order, bytes out.
 */
import * as Latch from "effect/Latch"
import { Buffer } from "node:buffer"
import type { Wire } from "../client/link.ts"
import type { FakeServer } from "../client/server.ts"
import { ProtocolError, RequestParser } from "./requestParser.ts"

/** Bytes of output, and requests without a reply, at which a client has to wait. */
const fullOutput = 1024 * 1024
const manyRequests = 1024
/** As Redis: more input than this from a client that has to wait, and the connection ends. */
const longestInput = 1024 * 1024 * 1024
/** What a browser sends first: Redis ends such a connection without an answer. */
const foreign: ReadonlySet<string> = new Set(["post", "host:"])

export class SocketSession {
  /** Open while there is output, or the end of the connection, to be seen to. */
  readonly work = Latch.makeUnsafe(false)
  /** Open while there is room for output. */
  readonly room = Latch.makeUnsafe(true)
  /** Whether the connection ends once the output is written. */
  isOver = false
  private output = ""
  private unanswered = 0
  private received = 0
  private problem: ProtocolError | undefined
  private isParsing = false
  private readonly parser = new RequestParser()
  private readonly wire: Wire<string>

  constructor(server: FakeServer, client: string) {
    this.wire = server.link(client).connect<string, string>((end) => server.acceptSocket(client, end), {
      opened: () => undefined,
      pushed: (push) => this.write(push),
      broken: () => this.end()
    }, true)
  }

  receive(chunk: Uint8Array): void {
    this.received += chunk.byteLength
    this.parser.feed(chunk)
    this.run()
    if (this.received > longestInput) this.end()
  }

  /** What is to be written; `undefined` if that is nothing. */
  take(): Uint8Array | undefined {
    this.run()
    const { output } = this
    if (output === "") {
      if (!this.isOver) this.work.closeUnsafe()
      return undefined
    }
    this.output = ""
    this.room.openUnsafe()
    return Buffer.from(output, "latin1")
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
    if (this.output !== "") this.work.openUnsafe()
    if (this.problem !== undefined && this.unanswered === 0 && !this.isOver) {
      this.output += `-ERR ${this.problem.message}\r\n`
      this.end()
    }
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

  private write(text: string): void {
    if (this.isOver) return
    this.output += text
    if (this.output.length >= fullOutput) this.room.closeUnsafe()
    // Replies to commands that arrived together leave together
    if (!this.isParsing) this.work.openUnsafe()
  }

  private end(): void {
    this.isOver = true
    this.room.openUnsafe()
    this.work.openUnsafe()
  }
}
