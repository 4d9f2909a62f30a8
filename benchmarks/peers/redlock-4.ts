/** The contestant for redlock 4, whose API differs from later versions. */
import { fromLocks } from "../lib/locks.ts"
import { type Client, connect, load } from "./folder.ts"

interface Lock {
  readonly extend: (duration: number) => Promise<Lock>
  readonly unlock: () => Promise<void>
}
interface Redlock {
  readonly lock: (resource: string, duration: number) => Promise<Lock>
  readonly on: (event: "clientError", listener: () => void) => void
}
type MakeRedlock = new(clients: ReadonlyArray<Client>, settings: Record<string, unknown>) => Redlock

const name = "redlock-4"

export const contestant = fromLocks(async ({ leaseMillis, setting, url }) => {
  const { default: Redlock } = await load<{ readonly default: MakeRedlock }>(name, "redlock")
  const client = await connect(name, url)
  const redlock = new Redlock([client], setting === "fast" ? { retryDelay: 1, retryJitter: 1, retryCount: -1 } : {})
  redlock.on("clientError", () => {})
  return {
    acquire: async (key) => {
      const lock = await redlock.lock(key, leaseMillis)
      return () => lock.unlock()
    },
    // redlock 4 does not renew locks, so extend each lock with a timer, as its manual shows
    hold: async (key) => {
      let lock = await redlock.lock(key, leaseMillis)
      const timer = setInterval(() => {
        void lock.extend(leaseMillis).then((extended) => {
          lock = extended
        })
      }, Math.round(leaseMillis * 0.8))
      return () => {
        clearInterval(timer)
        return lock.unlock()
      }
    },
    close: () => client.disconnect()
  }
})
