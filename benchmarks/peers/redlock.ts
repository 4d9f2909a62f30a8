/** The contestant for redlock 5 and for its fork @sesamecare-oss/redlock, which have the same API. */
import { fromLocks } from "../lib/locks.ts"
import { type Client, connect, holding } from "./folder.ts"

interface Redlock {
  readonly acquire: (
    resources: ReadonlyArray<string>,
    duration: number
  ) => Promise<{ readonly release: () => Promise<unknown> }>
  readonly using: (
    resources: ReadonlyArray<string>,
    duration: number,
    routine: () => Promise<unknown>
  ) => Promise<unknown>
  readonly on: (event: "error", listener: () => void) => void
}

export type MakeRedlock = new(clients: ReadonlyArray<Client>, settings: Record<string, unknown>) => Redlock

export const fromRedlock = (name: string, loadRedlock: () => Promise<MakeRedlock>) =>
  fromLocks(async ({ leaseMillis, setting, url }) => {
    const Redlock = await loadRedlock()
    const client = await connect(name, url)
    const redlock = new Redlock([client], setting === "fast" ? { retryDelay: 1, retryJitter: 1, retryCount: -1 } : {})
    // redlock emits "error" for every failed attempt, which would end the process if there were no listener
    redlock.on("error", () => {})
    return {
      acquire: async (key) => {
        const lock = await redlock.acquire([key], leaseMillis)
        return () => lock.release()
      },
      hold: (key) => holding((body) => redlock.using([key], leaseMillis, body)),
      close: () => client.disconnect()
    }
  })
