/**
 * The `raw` contestant with effect-simba's scripts and messages. Shows what a hand-off in that protocol costs without
 * the library and Effect.
 */
import { Redis } from "ioredis"
import { createHash } from "node:crypto"
import { acquireAndRelease, keys } from "../../packages/redis/test/support/mutexProtocol.ts"
import type { Connect } from "../lib/contestant.ts"
import type { Locks, Release } from "../lib/locks.ts"

const sha = createHash("sha1").update(acquireAndRelease).digest("hex")
const confirmMillis = 2000

/**
 * Connects, and returns a contender's operations: `enter` queues and calls back on the grant. Also used by
 * `effectByOurScripts`.
 */
export const connect = async ({ leaseMillis, url }: Connect) => {
  const client = new Redis(url, { lazyConnect: true })
  const subscriber = new Redis(url, { lazyConnect: true })
  await Promise.all([client.connect(), subscriber.connect()])
  await client.script("LOAD", acquireAndRelease)

  /** Callbacks for grants, by the counter in the id. Each receives the token. */
  const waiting = new Map<string, (token: string, period: number) => void>()
  subscriber.on("message", (_channel: string, message: string) => {
    const [counter, kind, token, , period] = message.split("@@") as [string, ...Array<string>]
    if (kind === "granted") waiting.get(counter)?.(token!, Number(period))
  })
  /** Layers that stay subscribed to their channel, as in effect-simba. */
  const unused: Array<string> = []
  let [layers, ids] = [0, 0]

  const subscribed = async () => {
    const free = unused.pop()
    if (free !== undefined) return free
    const layer = `${process.pid.toString(36)}x${(++layers).toString(36)}`.padStart(12, "0")
    await subscriber.subscribe(keys.inboxChannel(layer))
    return layer
  }

  const enter = (name: string, layer: string, granted: () => void) => {
    const counter = String(++ids)
    const id = `${counter}-${layer}:raw`
    const of = name as Parameters<typeof keys.owner>[0]
    const call = (code: string, ...operands: ReadonlyArray<string | number>) =>
      client.evalsha(
        sha,
        4,
        ...[keys.owner(of), keys.queue(of), keys.fence(of), keys.reserved(of)],
        `${code} 1 ${leaseMillis} ${confirmMillis}`,
        ...operands
      ) as Promise<string | ReadonlyArray<string>>
    const grant = () => {
      waiting.delete(counter)
      granted()
    }
    waiting.set(counter, (token, period) => {
      if (period !== leaseMillis) void call("c", id, token, leaseMillis)
      grant()
    })
    void call("w", id).then((reply) => {
      if (typeof reply === "string") grant()
    })
    return () => {
      unused.push(layer)
      return call("r", id)
    }
  }

  return {
    subscribed,
    enter,
    close: () => {
      client.disconnect()
      subscriber.disconnect()
    }
  }
}

export const open = async (request: Connect): Promise<Locks> => {
  const { close, enter, subscribed } = await connect(request)
  return {
    acquire: async (name) => {
      const layer = await subscribed()
      return new Promise((resolve) => {
        const release: Release = enter(name, layer, () => resolve(release))
      })
    },
    close
  }
}
