/** The server's state for one connected client. */
import type { Blocked } from "./blockedClients.ts"
import type { Command } from "./command.ts"
import type { CommandSpec } from "./commandSpec.ts"
import type { Value } from "./reply.ts"
import type { BinaryPush } from "./session.ts"
import type { Tracking } from "./tracker.ts"
import type { User } from "./users.ts"

export interface Queued {
  readonly command: Command
  readonly spec: CommandSpec
  readonly args: ReadonlyArray<string>
}

export interface Watched {
  readonly db: number
  readonly key: string
  /** Whether the key had already expired when it was watched. */
  expired: boolean
}

export interface Request {
  readonly args: ReadonlyArray<string>
  readonly reply: (value: Value) => void
}

export interface Client {
  readonly id: number
  readonly push: (push: BinaryPush) => void
  readonly createdAt: number
  /** Whether replies and pushes are encoded as bytes, with the types and shapes of the client's protocol. */
  readonly wire: boolean
  protocol: 2 | 3
  /** The mode that CLIENT REPLY has set for this command and for the next. */
  replies: "on" | "off" | "skip next" | "skip"
  tracking: Tracking | undefined
  isMonitor: boolean
  db: number
  /** `undefined` until the client has authenticated, if the server requires it. */
  user: User | undefined
  name: string
  libName: string
  libVersion: string
  lastCommand: string
  lastAt: number
  closed: boolean
  readonly channels: Set<string>
  readonly patterns: Set<string>
  readonly shards: Set<string>
  queue: Array<Queued> | undefined
  queueFailed: boolean
  /** Whether a watched key has changed since WATCH. */
  touched: boolean
  watched: Array<Watched>
  blocked: Blocked | undefined
  /** Messages to the client that arrive while its transaction runs. They are sent between the replies. */
  interleaved: Array<BinaryPush> | undefined
  /** Requests that are waiting because the client is blocked, paused, or running a long script. */
  readonly waiting: Array<Request>
}

export const subscriptions = (client: Client): number =>
  client.channels.size + client.patterns.size + client.shards.size
