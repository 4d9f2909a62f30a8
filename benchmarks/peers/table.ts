/** The peers and their versions. Each peer is installed in a separate folder with the client that it needs. */
export interface Peer {
  readonly name: string
  readonly dependencies: Readonly<Record<string, string>>
  /** The options for the "fast" setting, as shown in the tables. The default setting has no options. */
  readonly fast: string
}

const ioredis5 = { ioredis: "5.11.1" }
const ioredis6 = { ioredis: "6.0.0" }

export const peers: ReadonlyArray<Peer> = [
  {
    name: "redis-semaphore",
    dependencies: { "redis-semaphore": "5.8.0", ...ioredis6 },
    fast: "retryInterval 1 ms"
  },
  {
    name: "redlock-5",
    dependencies: { redlock: "5.0.0-beta.2", ...ioredis5 },
    fast: "retryDelay 1 ms, retryJitter 1 ms, no retry limit"
  },
  {
    name: "redlock-4",
    dependencies: { redlock: "4.2.0", ...ioredis5 },
    fast: "retryDelay 1 ms, retryJitter 1 ms, no retry limit"
  },
  {
    name: "sesamecare-redlock",
    dependencies: { "@sesamecare-oss/redlock": "1.4.0", ...ioredis6 },
    fast: "retryDelay 1 ms, retryJitter 1 ms, no retry limit"
  },
  {
    name: "redlock-universal",
    dependencies: { "redlock-universal": "0.8.5", ...ioredis6 },
    fast: "lean mode, retryDelay 1 ms, a million attempts, no circuit breaker"
  },
  {
    name: "effect-distributed-lock",
    dependencies: { "effect-distributed-lock": "0.0.11", effect: "3.22.4", ...ioredis5 },
    fast: "acquireRetryPolicy every millisecond, pushes on"
  }
]
