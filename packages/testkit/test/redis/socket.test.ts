/** Tests the fake server on a network socket: protocol, backpressure, faults and time. */
import { FakeNetwork, FakeRedis } from "@effect-simba/testkit"
import * as FakeRedisServer from "@effect-simba/testkit/FakeRedisServer"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openRaw } from "../../../fake-redis/test/rawSocket.ts"

const open = (where: { readonly port: number } | { readonly path: string }) =>
  Effect.acquireRelease(Effect.promise(() => openRaw(where)), ({ socket }) => Effect.sync(() => socket.destroy()))

const listen = Effect.gen(function*() {
  const { port } = yield* FakeRedisServer.listen()
  return { port, raw: open({ port }) }
})

const withServer = Effect.provide(FakeRedis.layer())

describe("protocol", () => {
  it.live("parses inline commands, arrays and partial commands, and replies in order", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const client = yield* raw
      client.write("PING\r\nSET k \"a\\x00b\"\n*2\r\n$3\r\nGE")
      yield* Effect.promise(() => client.until((text) => text.endsWith("+OK\r\n")))
      client.write("T\r\n$1\r\n")
      client.write("k\r\n*0\r\n\r\n*1\r\n$4\r\nPING\r\n")
      const text = yield* Effect.promise(() => client.until((text) => text.split("+PONG").length === 3))
      assert.strictEqual(text, "+PONG\r\n+OK\r\n$3\r\na\0b\r\n+PONG\r\n")
    }).pipe(withServer))

  const errors: ReadonlyArray<readonly [sent: string, error: string]> = [
    ["*1\r\nfoo\r\n", "expected '$', got 'f'"],
    ["*x\r\n", "invalid multibulk length"],
    ["*99999999999\r\n", "invalid multibulk length"],
    ["*1\r\n$-1\r\n", "invalid bulk length"],
    ["*1\r\n$999999999999\r\n", "invalid bulk length"],
    ["GET \"a\r\n", "unbalanced quotes in request"],
    ["a".repeat(70_000), "too big inline request"],
    [`*${"1".repeat(70_000)}`, "too big mbulk count string"],
    [`*1\r\n$${"1".repeat(70_000)}`, "too big bulk count string"]
  ]
  for (const [sent, error] of errors) {
    it.live(`replies ${error} to ${JSON.stringify(sent.slice(0, 20))}, and closes the connection`, () =>
      Effect.gen(function*() {
        const { raw } = yield* listen
        const client = yield* raw
        client.write(`PING\r\n${sent}`)
        assert.strictEqual(
          yield* Effect.promise(() => client.rest()),
          `+PONG\r\n-ERR Protocol error: ${error}\r\n`
        )
      }).pipe(withServer))
  }

  it.live("closes a browser's connection without replying", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const client = yield* raw
      client.write("POST / HTTP/1.1\r\nHost: x\r\n\r\nSET a 1\r\n")
      assert.strictEqual(yield* Effect.promise(() => client.rest()), "")
      const server = yield* FakeRedis.FakeRedis
      assert.deepStrictEqual(yield* server.keys, [])
    }).pipe(withServer))

  it.live("replies to a client that has closed its half of the connection", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const client = yield* raw
      client.socket.end("PING\r\nECHO bye\r\n")
      assert.strictEqual(yield* Effect.promise(() => client.rest()), "+PONG\r\n$3\r\nbye\r\n")
    }).pipe(withServer))

  it.live("does not hand an element to a client that disconnects while it is blocked", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const [blocked, other] = yield* Effect.all([raw, raw])
      blocked.write("BLPOP list 0\r\n")
      other.write("PING\r\n")
      yield* Effect.promise(() => other.until((text) => text.includes("PONG")))
      blocked.socket.destroy()
      const server = yield* FakeRedis.FakeRedis
      while ((yield* server.connections()) > 1) yield* Effect.sleep("5 millis")
      other.write("RPUSH list item\r\nLLEN list\r\n")
      const text = yield* Effect.promise(() => other.until((text) => text.split(":1").length === 3))
      assert.include(text, ":1\r\n:1\r\n")
    }).pipe(withServer))

  it.live("listens on a Unix socket", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "fake-redis-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      )
      const path = join(folder, "s.sock")
      const address = yield* FakeRedisServer.listen({ path })
      assert.deepStrictEqual(address, { host: "", port: 0, path, url: `unix://${path}` })
      const client = yield* open({ path })
      client.write("PING\r\n")
      assert.strictEqual(yield* Effect.promise(() => client.until((text) => text.length > 5)), "+PONG\r\n")
    }).pipe(withServer))

  it.live("fails if it cannot listen", () =>
    Effect.gen(function*() {
      const { port } = yield* listen
      const error = yield* Effect.flip(FakeRedisServer.listen({ port }))
      assert.strictEqual(error._tag, "SocketServerError")
    }).pipe(withServer))
})

describe("load", () => {
  it.live("serves and closes a thousand connections", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const server = yield* FakeRedis.FakeRedis
      yield* Effect.scoped(Effect.gen(function*() {
        const clients = yield* Effect.all(Array.from({ length: 1000 }, () => raw), { concurrency: 100 })
        for (const client of clients) client.write("INCR n\r\n")
        const texts = yield* Effect.promise(() =>
          Promise.all(clients.map((client) => client.until((text) => text.endsWith("\r\n"))))
        )
        assert.deepStrictEqual(
          texts.map((text) => Number(text.slice(1))).sort((a, b) => a - b),
          Array.from({ length: 1000 }, (_, at) => at + 1)
        )
        assert.strictEqual(yield* server.connections(), 1000)
      }))
      while ((yield* server.connections()) > 0) yield* Effect.sleep("5 millis")
    }).pipe(withServer), 30_000)

  it.live("waits for a client that does not read, without losing data", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const server = yield* FakeRedis.FakeRedis
      const client = yield* raw
      client.write(`SET big ${"x".repeat(60_000)}\r\n`)
      yield* Effect.promise(() => client.until((text) => text === "+OK\r\n"))
      client.socket.pause()
      const gets = 1000
      client.write("GET big\r\n".repeat(gets))
      const ran = Effect.map(server.trace, (trace) => trace.filter(({ args }) => args[0] === "GET").length)
      let before = -1
      // No more commands are executed until the client reads
      while (before !== (yield* ran)) {
        before = yield* ran
        yield* Effect.sleep("100 millis")
      }
      assert.isBelow(before, gets)
      client.socket.resume()
      const size = 5 + gets * (60_000 + 10)
      const text = yield* Effect.promise(() => client.until((text) => text.length >= size))
      assert.strictEqual(text.length, size)
    }).pipe(withServer), 30_000)

  it.live("closes even if a client is not reading its replies", () =>
    Effect.gen(function*() {
      const server = yield* FakeRedis.FakeRedis
      const client = yield* Effect.scoped(Effect.gen(function*() {
        const { port } = yield* FakeRedisServer.listen()
        const client = yield* Effect.promise(() => openRaw({ port }))
        client.socket.pause()
        client.write(`SET big ${"x".repeat(60_000)}\r\n${"GET big\r\n".repeat(1000)}`)
        while ((yield* server.trace).length < 10) yield* Effect.sleep("5 millis")
        return client
      }))
      assert.strictEqual(yield* server.connections(), 0)
      client.socket.destroy()
    }).pipe(withServer), 10_000)
})

describe("time and faults", () => {
  it.effect("blocked clients time out and keys expire according to the TestClock", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const client = yield* raw
      client.write("SET k v EX 60\r\nBLPOP list 30\r\n")
      yield* Effect.promise(() => client.until((text) => text === "+OK\r\n"))
      const server = yield* FakeRedis.FakeRedis
      // BLPOP appears in the trace only after its reply, so wait a little for it to arrive
      while ((yield* server.trace).length < 1) yield* Effect.yieldNow
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
      yield* TestClock.adjust("31 seconds")
      yield* Effect.promise(() => client.until((text) => text.endsWith("*-1\r\n")))
      client.write("TTL k\r\n")
      yield* Effect.promise(() => client.until((text) => text.endsWith(":29\r\n")))
      yield* TestClock.adjust("30 seconds")
      client.write("GET k\r\n")
      const text = yield* Effect.promise(() => client.until((text) => text.endsWith("$-1\r\n")))
      assert.strictEqual(text, "+OK\r\n*-1\r\n:29\r\n$-1\r\n")
    }).pipe(withServer))

  it.live("if a reply is lost, the command still runs and its connection breaks", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const link = yield* FakeNetwork.link("socket")
      const client = yield* raw
      yield* link.set({ loseReply: 1 })
      client.write("SET k v\r\n")
      assert.strictEqual(yield* Effect.promise(() => client.rest()), "")
      const server = yield* FakeRedis.FakeRedis
      assert.deepStrictEqual(yield* server.dump("k"), { type: "string", value: "v" })
    }).pipe(withServer))

  it.live("a partition holds back replies, which arrive in order when it heals", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const link = yield* FakeNetwork.link("socket")
      const client = yield* raw
      const server = yield* FakeRedis.FakeRedis
      yield* link.partition("replies")
      client.write("SET k v\r\nGET k\r\n")
      while ((yield* server.trace).length < 2) yield* Effect.sleep("5 millis")
      assert.strictEqual(yield* Effect.promise(() => client.until(() => true)), "")
      yield* link.heal("replies")
      assert.strictEqual(
        yield* Effect.promise(() => client.until((text) => text.length >= 12)),
        "+OK\r\n$1\r\nv\r\n"
      )
    }).pipe(withServer))

  it.effect("if a command hangs, it still runs, but its connection is silent in the meantime", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const [client, other] = yield* Effect.all([raw, raw])
      const link = yield* FakeNetwork.link("socket")
      yield* link.set({ hang: { chance: 1, lasts: 60_000 } })
      client.write("SET k v\r\n")
      const server = yield* FakeRedis.FakeRedis
      while ((yield* server.trace).length < 1) yield* Effect.promise(() => new Promise(setImmediate))
      yield* link.set({})
      client.write("GET k\r\n")
      other.write("GET k\r\n")
      assert.strictEqual(yield* Effect.promise(() => other.until((text) => text.endsWith("v\r\n"))), "$1\r\nv\r\n")
      while ((yield* server.trace).length < 3) yield* Effect.promise(() => new Promise(setImmediate))
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(yield* Effect.promise(() => client.until(() => true)), "")
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(
        yield* Effect.promise(() => client.until((text) => text.length >= 12)),
        "+OK\r\n$1\r\nv\r\n"
      )
    }).pipe(withServer))

  it.live("a reset breaks all connections", () =>
    Effect.gen(function*() {
      const { raw } = yield* listen
      const clients = yield* Effect.all([raw, raw])
      for (const client of clients) client.write("PING\r\n")
      yield* Effect.promise(() => Promise.all(clients.map((client) => client.until((text) => text !== ""))))
      yield* (yield* FakeNetwork.link("socket")).reset
      yield* Effect.promise(() => Promise.all(clients.map((client) => client.rest())))
      const server = yield* FakeRedis.FakeRedis
      assert.strictEqual(yield* server.connections(), 0)
    }).pipe(withServer))
})
