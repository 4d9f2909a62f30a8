/**
 * Reads a server's append-only file, which contains every write command in order of execution. Tests on real servers
 * use it to check the history.
 */
import { Effect } from "effect"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import type { Server } from "./redisServer.ts"

/**
 * Server arguments for an append-only file that is synced before each reply. Acknowledged writes therefore survive a
 * crash.
 */
export const appendOnly = [
  "--appendonly yes",
  "--appendfsync always",
  "--auto-aof-rewrite-percentage 0",
  "--aof-use-rdb-preamble no"
]

/** Parses one file. Ignores an incomplete last command, because its reply was never sent. */
const commandsOf = (bytes: Buffer): Array<ReadonlyArray<string>> => {
  const found: Array<ReadonlyArray<string>> = []
  let at = 0
  const line = () => {
    const end = bytes.indexOf("\r\n", at)
    if (end === -1) return undefined
    const text = bytes.toString("utf8", at, end)
    at = end + 2
    return text
  }
  for (;;) {
    const head = line()
    if (head === undefined) return found
    // An annotation, such as a timestamp
    if (head.startsWith("#")) continue
    if (!/^\*\d+$/.test(head)) throw new Error(`not an append-only file: ${head.slice(0, 40)}`)
    const parts: Array<string> = []
    for (let left = Number(head.slice(1)); left > 0; left--) {
      const length = Number(line()?.slice(1))
      if (!(at + length + 2 <= bytes.length)) return found
      parts.push(bytes.toString("utf8", at, at + length))
      at += length + 2
    }
    found.push(parts)
  }
}

/** Returns all write commands since the server's first start. */
export const commandsWritten = Effect.fnUntraced(function*(server: Server) {
  const [, folder] = (yield* server.send("CONFIG", "GET", "dir")) as [string, string]
  return yield* Effect.promise(async () => {
    const files = (await readdir(folder, { recursive: true }))
      .filter((name) => name.endsWith(".aof"))
      .sort((a, b) =>
        Number(/\.(\d+)\.\w+\.aof$/.exec(a)?.[1] ?? 0) - Number(/\.(\d+)\.\w+\.aof$/.exec(b)?.[1] ?? 0)
        || a.localeCompare(b)
      )
    const contents = await Promise.all(files.map((name) => readFile(join(folder, name))))
    return contents.flatMap(commandsOf)
  })
})
