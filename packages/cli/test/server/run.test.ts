/** `effect-simba run`: a shell command under a lock. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freshName, openMutex, RedisServer, until } from "../../../redis/test/support/harness.ts"
import * as commandLine from "../support/commandLine.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-simba-run-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const exists = (path: string) => Effect.sync(() => statSync(path, { throwIfNoEntry: false }) !== undefined)

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const pidIn = (path: string) => Number(readFileSync(path, "utf8"))

/** A script that writes its own and its child's pid to files, then runs for a minute. Both processes ignore SIGTERM. */
const stubborn = (path: string) =>
  `trap '' TERM; echo $$ > ${path}/parent; sh -c "trap '' TERM; echo \\$\\$ > ${path}/child.new; mv ${path}/child.new ${path}/child; sleep 60" & wait; wait`

layer(RedisServer.layer, { excludeTestServices: true })("effect-simba run", (it) => {
  it.effect("the command receives the mutex and token, and `run` exits with the command's exit code", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const name = freshName("known")
      const { code, output } = yield* commandLine.run(
        ["run", name, "--", "sh", "-c", "echo \"$SIMBA_MUTEX,$SIMBA_TOKEN,$1\"; exit 7", "sh", "--json"],
        server
      )
      assert.strictEqual(code, 7)
      assert.match(output, new RegExp(`^${name},\\d+,--json\\n$`))
      assert.strictEqual((yield* commandLine.json(["inspect", name], server)).owner, null)
    }))

  it.effect("the command can read standard input from a pipe", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const run = yield* commandLine.start(["run", freshName("piped"), "--", "cat"], server)
      run.child.stdin!.end("a line\n")
      assert.strictEqual(yield* run.ended, 0)
      assert.strictEqual(run.output(), "a line\n")
    }))

  it.effect("exit codes follow the shell if a command is not found, not executable or killed by a signal", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const path = yield* folder
      const codeOf = (...command: ReadonlyArray<string>) =>
        Effect.map(commandLine.run(["run", freshName("codes"), "--", ...command], server), ({ code }) => code)
      assert.strictEqual(yield* codeOf("effect-simba-no-such-command"), 127)
      assert.strictEqual(yield* codeOf(path), 126)
      assert.strictEqual(yield* codeOf("sh", "-c", "kill -KILL $$"), 128 + 9)
      assert.strictEqual(yield* codeOf("sh", "-c", "kill -TERM $$"), 128 + 15)
    }))

  it.effect("only one command runs at a time, and `run` exits with 75 if waiting times out", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const name = freshName("one at a time")
      const path = yield* folder
      const script = `mkdir ${path}/inside && sleep 0.3 && rmdir ${path}/inside`
      const holder = yield* openMutex(server)
      yield* Effect.scoped(Effect.gen(function*() {
        yield* holder.acquire(name)
        assert.strictEqual((yield* commandLine.run(["run", name, "--if-available", "--", "true"], server)).code, 75)
        for (const command of [["--json", "--", "echo"], ["echo", "--json"]]) {
          const late = yield* commandLine.run(["run", name, "--timeout", "1s", ...command], server)
          assert.strictEqual(late.code, 75)
          assert.strictEqual(late.output, "", command.join(" "))
          assert.strictEqual(JSON.parse(late.errors).error.tag, "AcquireTimeout")
        }
      }))
      const codes = yield* Effect.forEach(
        [1, 2, 3],
        () => Effect.map(commandLine.run(["run", name, "--", "sh", "-c", script], server), ({ code }) => code),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(codes, [0, 0, 0])
    }))

  it.effect("a loss kills the command and all its child processes, and `run` exits with 79", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const name = freshName("lost")
      const path = yield* folder
      const run = yield* commandLine.start(["run", name, "--grace", "1h", "--", "sh", "-c", stubborn(path)], server)
      yield* until("it runs", exists(`${path}/child`))
      const pids = [pidIn(`${path}/parent`), pidIn(`${path}/child`)]
      assert.deepStrictEqual(pids.map(isAlive), [true, true])
      yield* commandLine.run(["release", name, "--force", "--yes"], server)
      assert.strictEqual(yield* run.ended, 79)
      assert.match(run.errors(), /released by force.* The command was killed\.\n$/)
      yield* until("both processes have ended", Effect.sync(() => !pids.some(isAlive)))
    }))

  it.effect("an outage that outlasts the lease kills the command", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const path = yield* folder
      const run = yield* commandLine.start(
        ["run", "m", "--ttl", "500ms", "--transition", "1500ms", "--grace", "1h", "--", "sh", "-c", stubborn(path)],
        server
      )
      yield* until("it runs", exists(`${path}/child`))
      yield* server.kill("SIGKILL")
      assert.strictEqual(yield* run.ended, 79)
      yield* until("the command has ended", Effect.sync(() => !isAlive(pidIn(`${path}/child`))))
    }))

  it.effect("after a signal, the command gets a grace period and is then killed before the mutex is released", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const name = freshName("signal")
      const path = yield* folder
      const script =
        `trap 'sleep 0.5; echo > ${path}/cleaned; exit 0' TERM; echo > ${path}/started; while :; do sleep 0.05; done`
      const run = yield* commandLine.start(["run", name, "--", "sh", "-c", script], server)
      yield* until("it runs", exists(`${path}/started`))
      run.child.kill("SIGTERM")
      yield* until(
        "the mutex is free",
        Effect.map(commandLine.json(["inspect", name], server), ({ owner }) => owner === null)
      )
      assert.isTrue(yield* exists(`${path}/cleaned`))
      assert.strictEqual(yield* run.ended, 130)

      const deaf = yield* commandLine.start(["run", name, "--grace", "200ms", "--", "sh", "-c", stubborn(path)], server)
      yield* until("it runs", exists(`${path}/child`))
      deaf.child.kill("SIGTERM")
      assert.strictEqual(yield* deaf.ended, 130)
      yield* until("the command has ended", Effect.sync(() => !isAlive(pidIn(`${path}/child`))))
    }))

  it.effect("a closing terminal may send SIGHUP twice", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const name = freshName("hangup")
      const path = yield* folder
      const script =
        `trap 'echo > ${path}/ending' TERM; echo > ${path}/started; while [ ! -e ${path}/end ]; do sleep 0.05; done`
      const run = yield* commandLine.start(["run", name, "--", "sh", "-c", script], server)
      yield* until("it runs", exists(`${path}/started`))
      run.child.kill("SIGHUP")
      yield* until("the command is ending", exists(`${path}/ending`))
      run.child.kill("SIGHUP")
      writeFileSync(`${path}/end`, "")
      assert.strictEqual(yield* run.ended, 130)
      assert.strictEqual((yield* commandLine.json(["inspect", name], server)).owner, null)
    }))

  it.effect("a loss ends the grace period", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const name = freshName("lost while ending")
      const path = yield* folder
      const run = yield* commandLine.start(["run", name, "--grace", "1h", "--", "sh", "-c", stubborn(path)], server)
      yield* until("it runs", exists(`${path}/child`))
      run.child.kill("SIGTERM")
      yield* Effect.sleep("300 millis")
      assert.isTrue(isAlive(pidIn(`${path}/child`)))
      yield* commandLine.run(["release", name, "--force", "--yes"], server)
      assert.strictEqual(yield* run.ended, 130)
      yield* until("the command has ended", Effect.sync(() => !isAlive(pidIn(`${path}/child`))))
    }), 30_000)

  it.effect("child processes that the command leaves behind are killed", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const path = yield* folder
      const script = `sh -c 'echo $$ > ${path}/child; sleep 60' & while [ ! -s ${path}/child ]; do sleep 0.05; done`
      assert.strictEqual((yield* commandLine.run(["run", freshName("left"), "--", "sh", "-c", script], server)).code, 0)
      yield* until("the child has ended", Effect.sync(() => !isAlive(pidIn(`${path}/child`))))
    }))

  it.effect("the command is shut down gracefully on Ctrl-C and when the terminal closes", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const path = yield* folder
      const script = `trap 'echo > ${path}/cleaned; exit 0' TERM; echo > ${path}/started; while :; do sleep 0.05; done`
      const name = freshName("terminal")
      const run = yield* commandLine.start(["run", name, "--", "sh", "-c", script], { ...server, terminal: true })
      yield* until("it runs", exists(`${path}/started`))
      run.write("\u0003")
      assert.strictEqual(yield* run.ended, 130)
      assert.isTrue(yield* exists(`${path}/cleaned`))

      rmSync(`${path}/cleaned`)
      rmSync(`${path}/started`)
      const closed = yield* commandLine.start(["run", name, "--", "sh", "-c", script], { ...server, terminal: true })
      yield* until("it runs", exists(`${path}/started`))
      closed.child.kill("SIGKILL") // Kill the process that owns the terminal, to hang up.
      yield* until("the command has ended", exists(`${path}/cleaned`))
      yield* until(
        "the mutex is free",
        Effect.map(commandLine.json(["inspect", name], server), ({ owner }) => owner === null)
      )
    }))
})
