/** Finds the folders in which peers are installed, and imports modules from there. */
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { Release } from "../lib/locks.ts"

const root = fileURLToPath(new URL("../.peers/", import.meta.url))

export const folderOf = (name: string): string => join(root, name)

/** A file that is written into each peer's folder because imports are resolved relative to the importing file. */
export const loader = `export const load = (specifier) => import(specifier)\n`

interface Loader {
  readonly load: (specifier: string) => Promise<unknown>
}

/**
 * Imports a module from the peer's folder. The caller declares the type of the exports, because peers are not
 * type-checked.
 */
export const load = async <A>(peer: string, specifier: string): Promise<A> => {
  const { load } = await import(pathToFileURL(join(folderOf(peer), "load.mjs")).href) as Loader
  return await load(specifier) as A
}

/** The ioredis client methods, of any version, that the suite itself needs. */
export interface Client {
  readonly ping: () => Promise<unknown>
  readonly disconnect: () => void
}

export const connect = async (peer: string, url: string): Promise<Client> => {
  const { Redis } = await load<{ readonly Redis: new(url: string) => Client }>(peer, "ioredis")
  const client = new Redis(url)
  await client.ping()
  return client
}

/** Turns a function that holds a lock while a body runs into separate acquire and release functions. */
export const holding = (use: (body: () => Promise<void>) => Promise<unknown>): Promise<Release> =>
  new Promise((resolve, reject) => {
    let finish = () => {}
    const finished = new Promise<void>((done) => {
      finish = done
    })
    const all = use(() => {
      resolve(() => {
        finish()
        return all
      })
      return finished
    })
    all.catch(reject)
  })
