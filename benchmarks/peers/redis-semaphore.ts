/** The contestant for redis-semaphore. */
import { fromLocks } from "../lib/locks.ts"
import { type Client, connect, load } from "./folder.ts"

interface Mutex {
  readonly acquire: () => Promise<void>
  readonly release: () => Promise<void>
}
type MakeMutex = new(client: Client, key: string, options: Record<string, unknown>) => Mutex

const name = "redis-semaphore"

export const contestant = fromLocks(async ({ leaseMillis, setting, url }) => {
  const { Mutex } = await load<{ readonly Mutex: MakeMutex }>(name, name)
  const client = await connect(name, url)
  const options = { lockTimeout: leaseMillis, ...(setting === "fast" ? { retryInterval: 1 } : {}) }
  return {
    acquire: async (key) => {
      const mutex = new Mutex(client, key, options)
      await mutex.acquire()
      return () => mutex.release()
    },
    close: () => client.disconnect()
  }
})
