/** Tests `createFakeRedis` and its command line: sockets, time, faults and closing. */
import { createFakeRedis, type Options } from "@effect-simba/fake-redis"
import { assert, describe, it } from "@effect/vitest"
import { Redis } from "ioredis"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { vi } from "vitest"
import { fuzz } from "./fuzz/fuzz.ts"
import { openRaw } from "./rawSocket.ts"

const served =
  (steps: (server: Awaited<ReturnType<typeof createFakeRedis>>) => Promise<void>, options?: Options) => async () => {
    await using server = await createFakeRedis(options)
    await steps(server)
  }

describe("createFakeRedis", () => {
  it(
    "serves clients at its URL",
    served(async ({ host, path, port, url }) => {
      assert.strictEqual(url, `redis://${host}:${port}`)
      assert.strictEqual(path, "")
      const redis = new Redis(url)
      assert.strictEqual(await redis.set("k", "v"), "OK")
      assert.strictEqual(await redis.eval("return redis.call('get', KEYS[1])", 1, "k"), "v")
      redis.disconnect()
    })
  )

  it(
    "sends the replies to a pipeline in a single write, including replies to scripts",
    served(async ({ port }) => {
      const client = await openRaw({ port })
      const writes = vi.spyOn(Socket.prototype, "write")
      client.write(
        "SET k 1\r\nEVAL \"return redis.call('incr', KEYS[1])\" 1 k\r\nGET k\r\nNOPE\r\n".repeat(4) + "ECHO end\r\n"
      )
      await client.until((text) => text.endsWith("end\r\n"))
      const written = (writes.mock.contexts as ReadonlyArray<Socket>).filter(({ localPort }) =>
        localPort === port
      ).length
      writes.mockRestore()
      client.socket.destroy()
      assert.strictEqual(written, 1)
    })
  )

  it(
    "parses inline commands, arrays and partial commands, and replies in order",
    served(async ({ port }) => {
      const client = await openRaw({ port })
      client.write("PING\r\nSET k \"a\\x00b\"\n*2\r\n$3\r\nGE")
      await client.until((text) => text.endsWith("+OK\r\n"))
      client.write("T\r\n$1\r\n")
      client.write("k\r\n*0\r\n\r\n*1\r\n$4\r\nPING\r\n")
      assert.strictEqual(
        await client.until((text) => text.split("+PONG").length === 3),
        "+PONG\r\n+OK\r\n$3\r\na\0b\r\n+PONG\r\n"
      )
      client.socket.destroy()
    })
  )

  it(
    "closes a connection after a protocol error, and a browser's connection without a reply",
    served(async ({ port }) => {
      const client = await openRaw({ port })
      client.write("PING\r\n*1\r\nfoo\r\n")
      assert.strictEqual(await client.rest(), "+PONG\r\n-ERR Protocol error: expected '$', got 'f'\r\n")
      const browser = await openRaw({ port })
      browser.write("POST / HTTP/1.1\r\nHost: x\r\n\r\nSET a 1\r\n")
      assert.strictEqual(await browser.rest(), "")
    })
  )

  it(
    "replies to a client that has closed its half of the connection",
    served(async ({ port }) => {
      const client = await openRaw({ port })
      client.socket.end("PING\r\nECHO bye\r\n")
      assert.strictEqual(await client.rest(), "+PONG\r\n$3\r\nbye\r\n")
    })
  )

  it(
    "does not serve a client that disconnects while it is blocked",
    served(async ({ port, url }) => {
      const blocked = await openRaw({ port })
      const redis = new Redis(url)
      blocked.write("BLPOP list 0\r\n")
      while (!String(await redis.info("clients")).includes("blocked_clients:1")) { /* until it blocks */ }
      blocked.socket.destroy()
      while (!String(await redis.info("clients")).includes("blocked_clients:0")) { /* until it is gone */ }
      await redis.rpush("list", "item")
      assert.strictEqual(await redis.llen("list"), 1)
      redis.disconnect()
    })
  )

  it(
    "sends the replies to a pipeline in one packet",
    served(async ({ port }) => {
      const client = await openRaw({ port })
      let packets = 0
      client.socket.on("data", () => packets++)
      client.write("INCR n\r\n".repeat(16))
      await client.until((text) => text.endsWith(":16\r\n"))
      assert.strictEqual(packets, 1)
      client.socket.destroy()
    })
  )

  it(
    "waits for a client that stops reading, and loses no bytes",
    served(async ({ port, url }) => {
      const redis = new Redis(url)
      await redis.set("big", "x".repeat(60_000))
      const client = await openRaw({ port })
      client.socket.pause()
      client.write("GET big\r\n".repeat(1000))
      const processed = async () => Number(/total_commands_processed:([0-9]+)/.exec(await redis.info("stats"))?.[1])
      const first = await processed()
      await new Promise((resolve) => setTimeout(resolve, 100))
      assert.isBelow(await processed() - first, 990)
      client.socket.resume()
      const size = 1000 * (60_000 + 10)
      assert.strictEqual((await client.until((text) => text.length >= size)).length, size)
      client.socket.destroy()
      redis.disconnect()
    }),
    30_000
  )

  it("listens on a Unix socket", async () => {
    const folder = mkdtempSync(join(tmpdir(), "fake-redis-"))
    const path = join(folder, "s.sock")
    await served(async (server) => {
      assert.strictEqual(server.url, `unix://${path}`)
      assert.strictEqual(server.port, 0)
      const client = await openRaw({ path })
      client.write("PING\r\n")
      assert.strictEqual(await client.until((text) => text.length > 5), "+PONG\r\n")
      client.socket.destroy()
    }, { path })()
    rmSync(folder, { recursive: true })
  })

  it(
    "rejects if it cannot listen",
    served(async ({ port }) => {
      const error: unknown = await createFakeRedis({ port }).catch((error: unknown) => error)
      assert.include(String(error), "EADDRINUSE")
    })
  )

  it("closes even if a client does not read its replies", async () => {
    const server = await createFakeRedis()
    const client = await openRaw({ port: server.port })
    client.write(`SET big ${"x".repeat(60_000)}\r\n`)
    await client.until((text) => text !== "")
    client.socket.pause()
    client.write("GET big\r\n".repeat(1000))
    await new Promise((resolve) => setTimeout(resolve, 20))
    await server.close()
    client.socket.destroy()
  })

  it("survives fuzzed input", async () => {
    const { cases, closed } = await fuzz({ seed: 1, cases: 400 })
    assert.strictEqual(cases, 400)
    assert.isAbove(closed, 0)
  }, 30_000)
})

describe("time", () => {
  it(
    "advance expires keys and times out blocked clients",
    served(async (server) => {
      const redis = new Redis(server.url)
      const events: Array<string> = []
      const listener = new Redis(server.url)
      await redis.config("SET", "notify-keyspace-events", "Ex")
      await listener.subscribe("__keyevent@0__:expired")
      listener.on("message", (_, key) => events.push(key))
      const blocked = new Redis(server.url)
      await redis.set("session", "alice", "EX", 3600)
      const waiting = blocked.blpop("list", 30)
      while (!String(await redis.info("clients")).includes("blocked_clients:1")) { /* until it blocks */ }
      server.advance(31_000)
      assert.isNull(await waiting)
      assert.strictEqual(await redis.ttl("session"), 3569)
      for (const wrong of [-1, NaN, Infinity]) {
        assert.throws(() => server.advance(wrong), `cannot advance by ${wrong}`)
      }
      server.advance(3_600_000)
      assert.isNull(await redis.get("session"))
      while (events.length === 0) await redis.ping()
      assert.deepStrictEqual(events, ["session"])
      for (const client of [redis, listener, blocked]) client.disconnect()
    })
  )

  it(
    "blocking commands time out without a call to advance",
    served(async ({ url }) => {
      const redis = new Redis(url)
      const waiting = redis.blpop("list", 0.02)
      assert.isNull(await waiting)
      redis.disconnect()
    })
  )

  it("follows a test runner's fake timers", async () => {
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] })
    try {
      await served(async ({ port }) => {
        const client = await openRaw({ port })
        client.write("SET k v EX 60\r\nBLPOP list 30\r\n")
        await client.until((text) => text === "+OK\r\n")
        await new Promise((resolve) => setImmediate(resolve))
        vi.advanceTimersByTime(31_000)
        await client.until((text) => text.endsWith("*-1\r\n"))
        client.write("TTL k\r\n")
        assert.strictEqual(await client.until((text) => text.endsWith(":29\r\n")), "+OK\r\n*-1\r\n:29\r\n")
        client.socket.destroy()
      })()
    } finally {
      vi.useRealTimers()
    }
  })
})

describe("with all timers faked", () => {
  const all = ["Date", "performance", "setTimeout", "clearTimeout", "setImmediate", "clearImmediate", "queueMicrotask"]
  const withFakeTimers = (steps: () => Promise<void>) => async () => {
    vi.useFakeTimers({ toFake: all as Array<"Date"> })
    try {
      await steps()
    } finally {
      vi.useRealTimers()
    }
  }

  it(
    "commands get replies, and a script that never ends can be killed",
    withFakeTimers(served(async ({ port }) => {
      const [client, other] = [await openRaw({ port }), await openRaw({ port })]
      client.write("CONFIG SET busy-reply-threshold 1\r\nEVAL \"while true do end\" 0\r\n")
      await client.until((text) => text === "+OK\r\n")
      other.write("GET k\r\n")
      assert.match(await other.until((text) => text.endsWith("\r\n")), /^-BUSY/)
      other.write("SCRIPT KILL\r\n")
      assert.match(await other.until((text) => text.endsWith("+OK\r\n")), /\+OK\r\n$/)
      for (const { socket } of [client, other]) socket.destroy()
    }))
  )

  it(
    "a blocking command times out after the test runner has restored the timers",
    withFakeTimers(served(async ({ port }) => {
      const client = await openRaw({ port })
      client.write("SET k v PX 50\r\n")
      await client.until((text) => text === "+OK\r\n")
      vi.useRealTimers()
      client.write("BLPOP list 0.06\r\n")
      assert.strictEqual(await client.until((text) => text.endsWith("*-1\r\n")), "+OK\r\n*-1\r\n")
      client.socket.destroy()
    }, { expiryDelay: [0, 0] }))
  )
})

describe("a closed server", () => {
  it("sets no timers, even if a test runner has restored the process's timers", async () => {
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] })
    const server = await createFakeRedis()
    const client = await openRaw({ port: server.port })
    client.write("SET k v EX 3600\r\n")
    await client.until((text) => text === "+OK\r\n")
    vi.useRealTimers()
    const set = vi.spyOn(globalThis, "setTimeout")
    await server.close()
    await client.rest()
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepStrictEqual(set.mock.calls.map(([, millis]) => millis).filter((millis) => millis! > 60_000), [])
    set.mockRestore()
  })
})

describe("faults", () => {
  it(
    "a failover loses the last writes and closes all connections",
    served(async (server) => {
      const client = await openRaw({ port: server.port })
      client.write("SET a 1\r\nSET b 2\r\n")
      await client.until((text) => text.length >= 10)
      assert.strictEqual(server.failover(1), 1)
      await client.rest()
      const redis = new Redis(server.url)
      assert.deepStrictEqual(await redis.mget("a", "b"), ["1", null])
      redis.disconnect()
      assert.throws(() => server.failover(17), "undoDepth")
      for (const wrong of [-1, NaN, 0.5]) assert.throws(() => server.failover(wrong), `cannot lose ${wrong} writes`)
    })
  )

  it(
    "an error state rejects commands until it is cleared, and a restart drops the data",
    served(async (server) => {
      const redis = new Redis({ port: server.port, enableReadyCheck: false })
      await redis.set("a", 1)
      server.setErrorState("READONLY")
      assert.include(await redis.set("a", 2).catch(String), "READONLY")
      server.setErrorState(undefined)
      // What the doctor reads
      assert.include(await redis.info("persistence"), "aof_enabled:0")
      server.restart()
      assert.isNull(await redis.get("a"))
      redis.disconnect()
    })
  )
})

describe("fake-redis", () => {
  const program = fileURLToPath(new URL("../src/bin/fakeRedis.ts", import.meta.url))
  const start = (...args: ReadonlyArray<string>) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    let errors = ""
    child.stderr.on("data", (chunk: Buffer) => errors += chunk.toString())
    const line = new Promise<string>((resolve) =>
      child.stdout.on("data", (chunk: Buffer) => {
        output += chunk.toString()
        if (output.includes("\n")) resolve(output.split("\n")[0]!)
      })
    )
    const ended = new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code)))
    return { child, ended, line, errors: () => errors }
  }

  it("prints its address first, serves clients, and shuts down gracefully on a signal", async () => {
    const { child, ended, errors, line } = start("--seed", "7")
    const url = new URL(await line)
    assert.strictEqual(url.protocol, "redis:")
    const client = await openRaw({ port: Number(url.port) })
    client.write("PING\r\n")
    assert.strictEqual(await client.until((text) => text !== ""), "+PONG\r\n")
    child.kill("SIGTERM")
    assert.strictEqual(await client.rest(), "+PONG\r\n")
    assert.strictEqual(await ended, 0)
    assert.strictEqual(errors(), "")
  })

  it("reports what is wrong with its arguments", async () => {
    const { ended, errors } = start("--port", "many")
    assert.strictEqual(await ended, 1)
    assert.include(errors(), "--port: \"many\" is not a port")
    assert.include(errors(), "--host H")
  })

  it("reports why it cannot listen", async () => {
    await served(async ({ port }) => {
      const { ended, errors } = start("--port", String(port))
      assert.strictEqual(await ended, 1)
      assert.include(errors(), "cannot listen: listen EADDRINUSE")
    })()
  })
})
