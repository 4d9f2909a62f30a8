/** The `raw` contestant: ioredis alone, doing the minimum that a lock needs. Shows the practical speed limit. */
import { Redis } from "ioredis"
import { createHash } from "node:crypto"
import { type Connect, type Contestant, namesFor, type PairsRequest } from "../lib/contestant.ts"
import { fromLocks, type Locks } from "../lib/locks.ts"
import { contestant as effectByOurScripts } from "./effectByOurScripts.ts"
import { open as openByOurScripts } from "./rawByOurScripts.ts"
import * as scripts from "./rawScripts.ts"

const renewedAtOnce = 500

const shaOf = (script: string) => createHash("sha1").update(script).digest("hex")
const sha = {
  take: shaOf(scripts.take),
  drop: shaOf(scripts.drop),
  enter: shaOf(scripts.enter),
  handOver: shaOf(scripts.handOver),
  renew: shaOf(scripts.renew),
  several: shaOf(scripts.several)
}

/** Batches the requests of one tick into script calls of up to 64. */
const coalescing = (client: Redis) => {
  let asked: Array<{ readonly key: string; readonly args: ReadonlyArray<string>; readonly done: () => void }> = []
  const flush = () => {
    const all = asked
    asked = []
    for (let i = 0; i < all.length; i += 64) {
      const some = all.slice(i, i + 64)
      void client.evalsha(sha.several, some.length, ...some.map(({ key }) => key), ...some.flatMap(({ args }) => args))
        .then(() => some.forEach(({ done }) => done()))
    }
  }
  return (key: string, ...args: ReadonlyArray<string>) =>
    new Promise<void>((done) => {
      if (asked.push({ key, args, done }) === 1) process.nextTick(flush)
    })
}

const pairs = (client: Redis, lease: number, acquire: Locks["acquire"]) => {
  let id = 0
  const coalesced = coalescing(client)
  const ways: Record<string, (name: string) => Promise<unknown>> = {
    usual: async (name) => {
      const mine = `${id++}-raw`
      await client.evalsha(sha.take, 1, name, mine, lease)
      await client.evalsha(sha.drop, 1, name, mine)
    },
    unawaited: async (name) => {
      const mine = `${id++}-raw`
      await client.evalsha(sha.take, 1, name, mine, lease)
      void client.evalsha(sha.drop, 1, name, mine)
    },
    queued: async (name) => {
      const release = await acquire(name)
      await release()
    },
    coalesced: async (name) => {
      const mine = `${id++}-raw`
      await coalesced(name, "1", mine, String(lease))
      await coalesced(name, "0", mine, "0")
    }
  }
  return async ({ inFlight, millis, oneName, variant }: PairsRequest) => {
    const once = ways[variant] ?? ways["usual"]!
    const end = performance.now() + millis
    let pairs = 0
    await Promise.all(
      namesFor(inFlight, oneName).map(async (names) => {
        for (let i = 0; performance.now() < end; i++) {
          await once(names[i % names.length]!)
          pairs++
        }
      })
    )
    return { pairs, failures: 0 }
  }
}

const open = async ({ leaseMillis, protocol, url }: Connect): Promise<Locks> => {
  const client = new Redis(url, { lazyConnect: true })
  const subscriber = new Redis(url, { lazyConnect: true })
  await Promise.all([client.connect(), subscriber.connect()])
  for (const script of Object.values(scripts)) await client.script("LOAD", script)

  const held = new Map<string, { readonly id: string }>()
  const turns = new Map<string, () => void>()
  subscriber.on("message", (channel: string) => turns.get(channel)?.())
  const unused: Array<string> = []
  let count = 0

  /** Returns an id whose channel is already subscribed. Ids are reused, so a waiter subscribes only once. */
  const subscribed = async () => {
    const free = unused.pop()
    if (free !== undefined) return free
    const id = `${process.pid}-${count++}`
    await subscriber.subscribe(id)
    return id
  }

  const acquire = async (name: string) => {
    const id = await subscribed()
    let isGranted = false
    while (!isGranted) {
      let settle: (isGranted: boolean) => void = () => undefined
      const reply = new Promise<boolean>((resolve) => {
        settle = resolve
      })
      turns.set(id, () => settle(true))
      const left = Number(await client.evalsha(sha.enter, 2, name, `${name}:queue`, id, leaseMillis))
      if (left < 0) break
      // Redis removes the key one millisecond after its remaining time has reached zero
      const timer = setTimeout(() => settle(false), left + 1)
      isGranted = (await reply) && protocol === "direct"
      clearTimeout(timer)
    }
    turns.delete(id)
    return () => {
      unused.push(id)
      return client.evalsha(sha.handOver, 2, name, `${name}:queue`, id, leaseMillis)
    }
  }

  const renew = async () => {
    const all = [...held]
    for (let i = 0; i < all.length; i += renewedAtOnce) {
      const some = all.slice(i, i + renewedAtOnce)
      await client.evalsha(
        sha.renew,
        some.length,
        ...some.map(([name]) => name),
        leaseMillis,
        ...some.map(([, { id }]) => id)
      )
    }
  }
  const renewing = setInterval(() => void renew(), Math.round(leaseMillis * 0.625))

  return {
    acquire,
    hold: async (name) => {
      const id = `${count++}-raw`
      await client.evalsha(sha.take, 1, name, id, leaseMillis)
      held.set(name, { id })
      return async () => {
        held.delete(name)
        await client.evalsha(sha.drop, 1, name, id)
      }
    },
    pairs: pairs(client, leaseMillis, acquire),
    close: () => {
      clearInterval(renewing)
      client.disconnect()
      subscriber.disconnect()
    }
  }
}

const locks = fromLocks((connect) => connect.protocol === "ours" ? openByOurScripts(connect) : open(connect))

export const contestant: Contestant = {
  connect: (request) => (request.protocol === "effect" ? effectByOurScripts : locks).connect(request)
}
