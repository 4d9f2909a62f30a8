/** The contestant for redlock-universal. */
import { fromLocks } from "../lib/locks.ts"
import { type Client, connect, holding, load } from "./folder.ts"

interface Lock {
  readonly acquire: () => Promise<unknown>
  readonly release: (handle: unknown) => Promise<unknown>
  readonly using: (body: () => Promise<unknown>) => Promise<unknown>
}
interface Library {
  readonly createLock: (config: Record<string, unknown>) => Lock
  readonly IoredisAdapter: new(client: Client) => object
}

const name = "redlock-universal"
const fast = { performance: "lean", retryDelay: 1, retryAttempts: 1_000_000, circuitBreaker: false }

export const contestant = fromLocks(async ({ leaseMillis, setting, url }) => {
  const { IoredisAdapter, createLock } = await load<Library>(name, name)
  const client = await connect(name, url)
  const adapter = new IoredisAdapter(client)
  const lockOf = (key: string) => createLock({ adapter, key, ttl: leaseMillis, ...(setting === "fast" ? fast : {}) })
  return {
    acquire: async (key) => {
      const lock = lockOf(key)
      const handle = await lock.acquire()
      return () => lock.release(handle)
    },
    hold: (key) => {
      const lock = lockOf(key)
      return holding((body) => lock.using(body))
    },
    close: () => client.disconnect()
  }
})
