/** Runs the examples that are programs as separate processes: on an in-memory Redis, on a real server, or on both. */
import { NodeServices } from "@effect/platform-node"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import * as Postgres from "../shared/postgresServer.ts"
import { find } from "../shared/redisServer.ts"

type Environment = Readonly<Record<string, string>>

const running = new Set<ChildProcess>()
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")))

/** Starts an example. `text` returns its output so far. */
const start = (file: string, environment: Environment) => {
  const { DATABASE_URL: _database, OTEL_EXPORTER_OTLP_ENDPOINT: _otlp, REDIS_URL: _redis, ...env } = process.env
  const child = spawn(process.execPath, [fileURLToPath(new URL(`../${file}`, import.meta.url))], {
    env: { ...env, NO_COLOR: "1", PORT: "0", ...environment },
    stdio: ["ignore", "pipe", "pipe"]
  })
  running.add(child)
  let text = ""
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (chunk) => text += chunk)
  const ended = once(child, "close").then(([code]) => {
    running.delete(child)
    return code as number | null
  })
  return { child, ended, text: () => text }
}

const runs = async (file: string, environment: Environment, expected: ReadonlyArray<RegExp>) => {
  const program = start(file, environment)
  const code = await program.ended
  assert.strictEqual(code, 0, program.text())
  for (const each of expected) assert.match(program.text(), each)
  assert.notMatch(program.text(), /WARN|ERROR|Warning: (?!SQLite)/)
}

/** Repeats a request until the response is as expected. */
const until = async <A>(ask: () => Promise<A>, holds: (reply: A) => boolean, why: () => string): Promise<A> => {
  const end = performance.now() + 30_000
  for (;;) {
    const reply = await ask().catch(() => undefined)
    if (reply !== undefined && holds(reply)) return reply
    if (performance.now() > end) {
      return assert.fail(`not as expected after 30 seconds: ${JSON.stringify(reply)}\n${why()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Stops a program with a signal once it has printed the expected text. */
const consumes = async (file: string, environment: Environment, expected: ReadonlyArray<RegExp>) => {
  const program = start(file, environment)
  await until(async () => program.text(), (text) => expected.every((each) => each.test(text)), program.text)
  program.child.kill("SIGTERM")
  await program.ended
}

/** Starts a web server. `stop` sends SIGTERM, as an orchestrator does. */
const serves = async (file: string, environment: Environment) => {
  const program = start(file, environment)
  const port = await until(
    async () => /Listening on http:\/\/\S+:(\d+)/.exec(program.text())?.[1] ?? program.child.exitCode ?? undefined,
    () => true,
    program.text
  )
  assert.isNull(program.child.exitCode, program.text())
  const url = `http://127.0.0.1:${port}`
  const stop = () => {
    program.child.kill("SIGTERM")
    return program.ended
  }
  return {
    url,
    text: program.text,
    health: () => fetch(`${url}/health`).then((reply) => reply.json() as Promise<{ readonly role: string }>),
    stop,
    [Symbol.asyncDispose]: async () => void await stop()
  }
}

const scope = Scope.makeUnsafe()
let real: Environment

beforeAll(async () => {
  const { name, url } = await Effect.runPromise(
    find.pipe(Effect.provide(NodeServices.layer), Effect.provideService(Scope.Scope, scope))
  )
  assert.notMatch(name, /in-memory/, "a redis-server is needed on the PATH")
  real = { REDIS_URL: url }
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const onBoth = (title: string, test: (redis: Environment) => Promise<void>) => {
  it(`${title}, on an in-memory Redis`, () => test({}))
  it(`${title}, on a real Redis`, () => test(real))
}

describe("programs that print their results", () => {
  onBoth(
    "one-connection.ts",
    (redis) => consumes("one-connection.ts", redis, [/booking orders:eu/, /booking orders:us/])
  )
  onBoth(
    "two-services.ts",
    (redis) => consumes("two-services.ts", redis, [/booking orders of orders:eu/, /booking refunds of refunds:eu/])
  )
  onBoth("own-client.ts", (redis) => runs("own-client.ts", redis, [/token \d+/, /visits: \d+/]))
  onBoth("node-redis.ts", (redis) => runs("node-redis.ts", redis, [/token \d+/]))
  onBoth("stream-fleet.ts", (redis) => runs("stream-fleet.ts", redis, [/eu: 42/, /us: 42/, /asia: 42/, /africa: 42/]))
  onBoth(
    "stream-messages.ts",
    (redis) =>
      runs("stream-messages.ts", redis, [
        /ada pays 1[^]*ada pays 2[^]*ada pays 3/,
        /cleo pays 1[^]*ben pays 3/,
        /30 readings up to 30/,
        /all are processed/
      ])
  )
  onBoth("exactly-once.ts on SQLite", (redis) => runs("exactly-once.ts", redis, [/bob has 42/]))
  onBoth(
    "fenced-sql.ts on SQLite",
    (redis) => runs("fenced-sql.ts", redis, [/alice has 111/, /refused: Token \d+ is stale/])
  )

  it("exactly-once.ts and fenced-sql.ts on Postgres", async () => {
    const database = Scope.makeUnsafe()
    const url = await Effect.runPromise(Effect.provideService(Postgres.start, Scope.Scope, database))
    await runs("exactly-once.ts", { DATABASE_URL: url }, [/bob has 42/])
    await runs("fenced-sql.ts", { DATABASE_URL: url }, [/alice has 111/, /refused: Token \d+ is stale/])
    await Effect.runPromise(Scope.close(database, Exit.void))
  })
})

describe("web servers", () => {
  for (const file of ["http-409.ts", "express.ts", "fastify.ts", "nest.ts"]) {
    const post = (url: string) => fetch(`${url}/reports/2026-11`, { method: "POST" })

    it(`${file} responds with 409 to one of two simultaneous requests, and with 200 to a later one`, async () => {
      await using server = await serves(file, {})
      const replies = await Promise.all([post(server.url), post(server.url)])
      assert.deepStrictEqual(replies.map(({ status }) => status).toSorted(), [200, 409])
      const later = await post(server.url)
      assert.strictEqual(later.status, 200)
      assert.deepInclude(await later.json(), { month: "2026-11" })
    })

    it(`${file} in two processes responds with 409 to one of two requests, and exits on SIGTERM`, async () => {
      await using one = await serves(file, real)
      await using other = await serves(file, real)
      const replies = await Promise.all([post(one.url), post(other.url)])
      assert.deepStrictEqual(replies.map(({ status }) => status).toSorted(), [200, 409])
      assert.include([0, 130, 143, null], await one.stop(), one.text())
    })
  }

  for (const file of ["leader.ts", "express.ts", "fastify.ts", "nest.ts"]) {
    it(`${file} shows who leads, and lets another process lead on SIGTERM`, async () => {
      await using one = await serves(file, real)
      await until(one.health, ({ role }) => role === "leader", one.text)
      await using other = await serves(file, real)
      assert.deepInclude(await other.health(), { role: "standby" })
      await one.stop()
      await until(other.health, ({ role }) => role === "leader", other.text)
      await until(async () => other.text(), (text) => /clean/.test(text), other.text)
    })
  }

  it("leader.ts leads on its own on an in-memory Redis", async () => {
    await using server = await serves("leader.ts", {})
    await until(server.health, ({ role }) => role === "leader", server.text)
  })
})

it("fenced-http.ts responds with 412 to a former owner's reads and writes", async () => {
  await using server = await serves("fenced-http.ts", {})
  const ask = async (method: "GET" | "PUT", token: string | undefined, body?: string) => {
    const reply = await fetch(`${server.url}/reports/2026-11`, {
      method,
      ...(token === undefined ? {} : { headers: { "Fencing-Token": token } }),
      ...(body === undefined ? {} : { body })
    })
    return [reply.status, await reply.text()] as const
  }
  assert.deepStrictEqual(await ask("PUT", "1795227205908240", "first"), [204, ""])
  assert.deepStrictEqual(await ask("GET", "1795227205908250"), [200, "first"])
  const [status, text] = await ask("PUT", "1795227205908240", "late")
  assert.strictEqual(status, 412)
  assert.include(text, "has seen 1795227205908250")
  assert.strictEqual((await ask("GET", "1795227205908240"))[0], 412)
  assert.deepStrictEqual(await ask("GET", "1795227205908250"), [200, "first"])
  assert.strictEqual((await ask("PUT", undefined, "no token"))[0], 428)
})

describe("metrics.ts", () => {
  onBoth("exposes metrics to Prometheus and sends them to a collector", async (redis) => {
    let sent = ""
    const collector = createServer((request, response) => {
      request.setEncoding("utf8").on("data", (chunk) => sent += chunk).on("end", () => response.end("{}"))
    })
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
    const address = collector.address()
    const port = typeof address === "object" ? address?.port : 0
    await using server = await serves("metrics.ts", {
      ...redis,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`
    })
    const text = await until(
      () => fetch(`${server.url}/metrics`).then((reply) => reply.text()),
      (text) => /simba_job_runs\{[^}]*outcome="success"[^}]*\} [1-9]/.test(text),
      server.text
    )
    assert.match(text, /simba_mutex_acquire_attempts\{[^}]*outcome="granted"[^}]*\} [1-9]/)
    assert.match(text, /simba_mutex_hold_time_bucket\{[^}]*le="/)
    await server.stop()
    assert.include(sent, "simba_mutex_acquire_attempts")
    collector.close()
  })
})
