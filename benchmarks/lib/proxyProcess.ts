/**
 * A TCP proxy in front of Redis, in a separate process. It counts the commands that clients send, and delays data by
 * half the added latency in each direction.
 */
import { connect, createServer, type Socket } from "node:net"
import { micros } from "./contestant.ts"
import { RespCounter } from "./respCounter.ts"

export interface ProxyOptions {
  readonly port: number
  /** The latency to add to a round trip. */
  readonly latencyMillis: number
}

/** The traffic since the parent process last requested a report. */
export interface Traffic {
  readonly commands: number
  /** The bytes on all connections, in both directions. */
  readonly bytes: number
  readonly byName: Record<string, number>
  /**
   * Each command with its time on the machine's monotonic clock, in microseconds. Empty unless the parent process asked
   * for a log with the previous report.
   */
  readonly log: ReadonlyArray<readonly [at: number, text: string]>
}

export type ProxyAsked = { readonly id: number; readonly log: boolean }
export type ProxyReplied = { readonly id: number; readonly port: number } & Traffic

const options = JSON.parse(process.argv[2]!) as ProxyOptions
const textLength = 400

let commands = 0
let bytes = 0
let byName: Record<string, number> = {}
let log: Array<readonly [number, string]> = []
let isLogging = false

const count = (parts: ReadonlyArray<Buffer>) => {
  const name = parts[0]?.toString("latin1").toLowerCase() ?? ""
  commands++
  byName[name] = (byName[name] ?? 0) + 1
  if (isLogging) log.push([micros(), parts.map((part) => part.toString("latin1")).join(" ").slice(0, textLength)])
}

/**
 * Forwards chunks when they are due. Polls the clock during the last two milliseconds, because timers have a resolution
 * of one millisecond.
 */
class Line {
  private readonly held: Array<{ readonly due: number; readonly chunk: Buffer }> = []
  private isWaiting = false
  private readonly to: Socket

  constructor(to: Socket) {
    this.to = to
  }

  pass(chunk: Buffer): void {
    if (options.latencyMillis === 0) {
      this.to.write(chunk)
      return
    }
    this.held.push({ due: performance.now() + options.latencyMillis / 2, chunk })
    if (!this.isWaiting) this.wait()
  }

  private wait(): void {
    this.isWaiting = this.held.length > 0
    if (!this.isWaiting) return
    const left = this.held[0]!.due - performance.now()
    if (left > 2) setTimeout(() => this.flush(), Math.floor(left - 1.5))
    else setImmediate(() => this.flush())
  }

  private flush(): void {
    while (this.held.length > 0 && this.held[0]!.due <= performance.now()) this.to.write(this.held.shift()!.chunk)
    this.wait()
  }
}

const server = createServer((client) => {
  const upstream = connect(options.port, "127.0.0.1")
  const requests = new Line(upstream)
  const replies = new Line(client)
  const counter = new RespCounter(count)
  client.setNoDelay(true)
  upstream.setNoDelay(true)
  client.on("data", (chunk) => {
    bytes += chunk.length
    counter.push(chunk)
    requests.pass(chunk)
  })
  upstream.on("data", (chunk) => {
    bytes += chunk.length
    replies.pass(chunk)
  })
  for (const [one, other] of [[client, upstream], [upstream, client]] as const) {
    one.on("close", () => other.destroy())
    one.on("error", () => other.destroy())
  }
})

const port = () => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

process.on("message", (asked: ProxyAsked) => {
  process.send?.({ id: asked.id, port: port(), commands, bytes, byName, log } satisfies ProxyReplied)
  commands = 0
  bytes = 0
  byName = {}
  log = []
  isLogging = asked.log
})
process.on("disconnect", () => process.exit(0))
server.listen(
  0,
  "127.0.0.1",
  () => process.send?.({ id: 0, port: port(), commands: 0, bytes: 0, byName: {}, log: [] } satisfies ProxyReplied)
)
