/**
 * A real Postgres server for tests. It listens on the loopback interface. Its temporary folder is removed when the
 * scope closes.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { chownSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { postgresProgram } from "../../scripts/lib/system.mjs"

/** Postgres refuses to run as root; Debian's package creates a user for it. */
const user = () => {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string) => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout)
  return { uid: id("-u"), gid: id("-g") }
}

const missing = "no Postgres server found on this machine; the tests start their own. "
  + "Debian, Ubuntu: apt-get install postgresql. Fedora: dnf install postgresql-server. macOS: brew install postgresql."

const freePort = Effect.callback<number>((resume) => {
  const probe = createServer()
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    probe.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})

/** Running servers, which are killed even if the process exits in the middle of a test. */
const children = new Set<ChildProcess>()
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")))

/** A connection pool whose sessions start with these settings. */
export const client = (url: string, startupParameters: Readonly<Record<string, string>> = {}) =>
  PgClient.layer({ url: Redacted.make(url), startupParameters })

/** Starts a server and returns its URL. */
export const start = Effect.gen(function*() {
  const owner = user()
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-simba-postgres-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  )
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid)
  const options = { ...owner, cwd: folder, encoding: "utf8" as const }
  const created = spawnSync(
    postgresProgram("initdb"),
    ["-D", "data", "-U", "simba", "-A", "trust", "--no-sync"],
    options
  )
  if (created.error !== undefined) return yield* Effect.die(new Error(missing))
  if (created.status !== 0) return yield* Effect.die(new Error(`initdb failed: ${created.stderr}`))
  const port = yield* freePort
  const args = ["-D", "data", "-h", "127.0.0.1", "-p", String(port), "-k", folder, "-F"]
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(postgresProgram("postgres"), args, { ...owner, cwd: folder, stdio: "ignore" })
      children.add(child)
      return child
    }),
    (child) =>
      Effect.callback<void>((resume) => {
        child.once("exit", () => {
          children.delete(child)
          resume(Effect.void)
        })
        // Immediate shutdown: do not wait for clients
        child.kill("SIGQUIT")
      })
  )
  const url = `postgres://simba@127.0.0.1:${port}/postgres`
  // Retry until the server accepts connections; the pool connects on the first query
  yield* SqlClient.SqlClient.use((sql) => sql`SELECT 1`).pipe(
    Effect.provide(client(url)),
    Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 400 })
  )
  return url
})

/** A client with its own server. */
export const layer = Layer.unwrap(Effect.map(start, (url) => client(url)))
