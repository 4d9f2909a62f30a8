/**
 * Starts a separate redis-server on a socket in a temporary folder, so that the tests cannot reach another server by
 * mistake.
 */
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Connection } from "./resp.ts"
import { open } from "./resp.ts"

export interface RealServer {
  /** The path of the server's Unix socket. */
  readonly path: string
  readonly stop: () => Promise<void>
}

const missing = "redis-server was not found on the PATH, and there is nothing else to compare the engine with. " +
  "Debian, Ubuntu: apt-get install redis-server. Fedora: dnf install redis. macOS: brew install redis."

const patiently = async (path: string): Promise<Connection> => {
  for (let attempt = 0;; attempt++) {
    try {
      return await open(path)
    } catch (error) {
      if (attempt > 200) throw error
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
}

export const startServer = async (): Promise<RealServer> => {
  const folder = await mkdtemp(join(tmpdir(), "effect-simba-differential-"))
  const path = join(folder, "redis.sock")
  const args = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", folder]
  const child = spawn("redis-server", args, { stdio: ["ignore", "pipe", "pipe"] })
  const kill = () => child.kill("SIGKILL")
  process.once("exit", kill)
  let log = ""
  const keep = (chunk: Buffer) => {
    log = (log + chunk.toString("utf8")).slice(-2000)
  }
  child.stdout.on("data", keep)
  child.stderr.on("data", keep)
  const ended = new Promise<string>((resolve) => {
    child.on("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ENOENT" ? missing : error.message))
    child.on("close", (code, signal) => resolve(`redis-server exited (${signal ?? code}):\n${log}`))
  })
  const stop = async () => {
    process.off("exit", kill)
    kill()
    await ended
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  const first = await Promise.race([patiently(path), ended]).catch((error: unknown) => String(error))
  if (typeof first !== "string") {
    first.close()
    return { path, stop }
  }
  await stop()
  throw new Error(first)
}

/** The server's `redis_version`. */
export const versionOf = async (connection: Connection): Promise<string> => {
  const [info] = await connection.send([["INFO", "server"]])
  return /^redis_version:(.*?)\r?$/m.exec(String(info))?.[1] ?? "of unknown version"
}
