import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { RedisServer } from "../../support/redisServer.ts"

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

layer(RedisServer.layer, { excludeTestServices: true })("a server for a test file", (it) => {
  it.effect("replies", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      assert.strictEqual(yield* server.send("PING"), "PONG")
      assert.strictEqual(yield* server.send("SET", "key", "välue", "PX", "60000"), "OK")
      assert.strictEqual(yield* server.send("GET", "key"), "välue")
      assert.deepStrictEqual(yield* server.send("CONFIG", "GET", "appendonly"), ["appendonly", "no"])
      assert.match((yield* Effect.flip(server.send("GET"))).message, /wrong number of arguments/)
    }))

  it.effect("restarts on its port after a kill, without its data", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const before = server.pid
      yield* server.send("SET", "key", "value")
      yield* server.kill()
      assert.isFalse(isAlive(before))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(server.send("PING"))))
      yield* server.restart
      assert.notStrictEqual(server.pid, before)
      assert.isNull(yield* server.send("GET", "key"))
    }))

  it.effect("does not reply while it is paused", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      yield* server.pause
      const silent = yield* Effect.timeoutOption(server.send("PING"), "150 millis")
      assert.strictEqual(silent._tag, "None")
      yield* server.resume
      assert.strictEqual(yield* server.send("PING"), "PONG")
    }))
})

describe("servers for a scope", () => {
  it.live("exit when the scope closes, even if they are paused", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const server = yield* Scope.provide(RedisServer.start({ args: ["--requirepass", "secret"] }), scope)
      assert.match((yield* Effect.flip(server.send("PING"))).message, /^NOAUTH/)
      yield* server.pause
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(isAlive(server.pid))
    }))

  it.effect("start in real time, even under a test clock", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      assert.strictEqual(yield* server.send("PING"), "PONG")
    }))

  it.live("switch to another port if theirs is in use, unless it was requested explicitly", () =>
    Effect.gen(function*() {
      const first = yield* RedisServer.start()
      const error = yield* Effect.flip(RedisServer.start({ port: first.port }))
      assert.strictEqual(error.message, `port ${first.port} is taken`)
    }))

  it.live("report the output of a redis-server that does not start", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(RedisServer.start({ args: ["--no-such-setting", "1"] }))
      assert.match(error.message, /no-such-setting/)
    }))
})
