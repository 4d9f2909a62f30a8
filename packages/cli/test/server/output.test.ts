/** The program's output when readers close their pipes, and when a command fails midway. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { freshName, RedisServer, until } from "../../../redis/test/support/harness.ts"
import * as commandLine from "../support/commandLine.ts"

layer(RedisServer.layer, { excludeTestServices: true })("effect-simba: output", (it) => {
  it.effect("exits silently when the reader of its output closes the pipe", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const run = yield* commandLine.start(["watch", "--poll-interval", "50ms"], server)
      yield* server.send("SET", `simba:{${freshName("first")}}`, "owner", "PX", "60000")
      yield* until("the first line", Effect.sync(() => run.output() !== ""))
      run.child.stdout!.destroy()
      yield* server.send("SET", `simba:{${freshName("second")}}`, "owner", "PX", "60000")
      assert.strictEqual(yield* run.ended, 141)
      assert.strictEqual(run.errors(), "")
    }))

  it.effect("fails with a one-line error if the disk is too full for its output", () =>
    Effect.gen(function*() {
      const { code, errors } = yield* commandLine.run(["list"], { ...yield* RedisServer, output: "/dev/full" })
      assert.strictEqual(code, 74)
      assert.match(errors, /^effect-simba: cannot write the output: ENOSPC[^\n]*\n$/)
    }))

  it.effect("kills the command of `run` after a loss and exits with 79, even if nobody reads its standard error", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const name = freshName("unread errors")
      const run = yield* commandLine.start(["run", name, "--", "sh", "-c", "echo started; sleep 60"], server)
      yield* until("it runs", Effect.sync(() => run.output() !== ""))
      run.child.stderr!.destroy()
      yield* commandLine.run(["release", name, "--force", "--yes"], server)
      assert.strictEqual(yield* run.ended, 79)
    }))

  it.effect("if a redrive fails midway, lists the dead letters that were already redriven", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const good = ["n", "1", "simba-reason", "r", "simba-id", "5-1", "simba-token", "1"]
      const redriven = Effect.fnUntraced(function*(...flags: ReadonlyArray<string>) {
        yield* server.send("DEL", "simba:dead:orders", "billing-input")
        yield* server.send("XADD", "billing-input", "1-1", "lbs-input", "{}")
        yield* server.send("XADD", "simba:dead:orders", "1-1", ...good)
        yield* server.send("XADD", "simba:dead:orders", "2-1", "from", "another program")
        const ids = ["1-1", "2-1", "3-1"]
        return yield* commandLine.run(["streams", "redrive", "billing", "--stream", "orders", ...ids, ...flags], server)
      })
      const values = yield* redriven("--json")
      assert.deepStrictEqual(JSON.parse(values.output), [{ id: "1-1", redriven: true }])
      assert.strictEqual(JSON.parse(values.errors).error.tag, "BackendError")
      assert.strictEqual(values.code, 69)
      const lines = yield* redriven()
      assert.strictEqual(lines.output, "redriven: 1-1\n")
      assert.match(lines.errors, /^effect-simba: Redriving dead letters failed/)
      assert.strictEqual(lines.code, 69)
    }))

  it.effect("lists all readable mutexes in one JSON value, even if it exceeds a pipe's buffer", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const foreign = freshName("foreign")
      const set = `for i = 1, 2000 do redis.call('SET', 'simba:{many' .. i .. '}', 'owner', 'PX', 60000) end`
      yield* server.send("EVAL", set, "0")
      yield* server.send("LPUSH", `simba:{${foreign}}`, "x")
      const { code, errors, output } = yield* commandLine.run(["list", "many", "--json"], server)
      assert.lengthOf(JSON.parse(output), 2000)
      assert.strictEqual(errors, "")
      assert.strictEqual(code, 0)
      const all = yield* commandLine.run(["list", "--json"], server)
      assert.isAtLeast(JSON.parse(all.output).length, 2000)
      assert.include(JSON.parse(all.errors).error.message, foreign)
      assert.strictEqual(all.code, 1)
    }))
})
