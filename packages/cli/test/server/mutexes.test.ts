/** The `effect-simba` commands that inspect and release mutexes, both with pipes and in a pseudo-terminal. */
import type { RedisDoctor } from "@effect-simba/redis"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Exit, Scope } from "effect"
import { freshName, openMutex, RedisServer, until } from "../../../redis/test/support/harness.ts"
import * as commandLine from "../support/commandLine.ts"

const escape = "\u001B["

layer(RedisServer.layer, { excludeTestServices: true })("effect-simba: mutexes", (it) => {
  it.effect("list and inspect show the owner, remaining time, token and queue", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const [holder, waiter] = yield* Effect.all([openMutex(server), openMutex(server)])
      const name = freshName("shown")
      const lease = yield* holder.acquire(name)
      yield* Effect.forkScoped(Effect.scoped(waiter.acquire(name)))
      yield* until("it waits", Effect.map(holder.inspect(name), ({ waiting }) => waiting === 1))

      const [row] = yield* commandLine.json(["list", name], server)
      assert.strictEqual(row.name, name)
      assert.strictEqual(row.owner, lease.id)
      assert.strictEqual(row.token, lease.token)
      assert.strictEqual(row.waiting, 1)
      assert.isAtMost(row.timeLeft, 16_000)
      assert.isAbove(row.timeLeft, 5000)
      assert.deepStrictEqual(yield* commandLine.json(["list", "no such prefix"], server), [])

      const shown = yield* commandLine.json(["inspect", name], server)
      assert.strictEqual(shown.waiters.length, 1)
      assert.isAbove(shown.waiters[0].waited, -1)

      const { code, output } = yield* commandLine.run(["inspect", name], server)
      assert.strictEqual(code, 0)
      for (const part of [name, lease.id, String(lease.token), shown.waiters[0].id]) assert.include(output, part)
    }))

  it.effect("if one mutex has a key from another program, list still shows the others, and release names the key", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const prefix = freshName("mixed")
      const [good, list, text] = [`${prefix}:good`, `${prefix}:list`, `${prefix}:text`]
      yield* server.send("SET", `simba:{${good}}`, "another")
      yield* server.send("RPUSH", `simba:{${list}}`, "another")
      yield* server.send("SET", `simba:{${text}}`, "an@@other")

      const { code, errors, output } = yield* commandLine.run(["list", prefix], server)
      assert.strictEqual(code, 1)
      assert.include(output, good)
      assert.notInclude(output, list)
      assert.include(errors, `Cannot inspect "${list}"`)
      assert.include(errors, `Cannot inspect "${text}"`)

      const watched = yield* commandLine.run(["watch", "--for", "1s"], server)
      assert.strictEqual(watched.code, 0)
      assert.include(watched.output, good)
      for (const name of [list, text]) {
        const refused = yield* commandLine.run(["release", name, "--force", "--yes"], server)
        assert.strictEqual(refused.code, 1)
        assert.include(refused.errors, `Cannot release "${name}"`)
        const shown = yield* commandLine.run(["inspect", name], server)
        assert.strictEqual(shown.code, 1)
        assert.include(shown.errors, `Cannot inspect "${name}"`)
        assert.include(shown.errors, `the key "simba:{${name}}`)
        assert.include(refused.errors, `If no program needs the key "simba:{${name}}", delete it.`)
      }
      yield* server.send("DEL", ...[good, list, text].map((name) => `simba:{${name}}`))
    }))

  it.effect("release names the mutex key that another program wrote, not the owner key", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const holder = yield* openMutex(server)
      for (
        const [part, command] of [["contender", "RPUSH"], ["fence", "RPUSH"], ["fence", "SET"]] as const
      ) {
        const name = freshName(`foreign ${part}`)
        const key = `simba:{${name}}:${part}`
        yield* holder.acquire(name)
        yield* server.send("DEL", key)
        yield* server.send(command, key, "another")
        const refused = yield* commandLine.run(["release", name, "--force", "--yes"], server)
        assert.strictEqual(refused.code, 1)
        assert.include(refused.errors, `If no program needs the key "${key}", delete it.`)
        yield* server.send("DEL", key)
      }
    }))

  it.effect("the output is coloured only on a terminal", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      assert.notInclude((yield* commandLine.run(["list"], server)).output, escape)
      assert.include((yield* commandLine.run(["list"], { ...server, terminal: true })).output, escape)
      const plain = yield* commandLine.run(["list"], { ...server, terminal: true, env: { NO_COLOR: "1" } })
      assert.notInclude(plain.output, escape)
      assert.include(plain.output, "NAME")
    }))

  it.effect("a name from another program cannot send escape sequences to the terminal", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const holder = yield* openMutex(server)
      const name = freshName(`wiped ${escape}2J`)
      yield* holder.acquire(name)
      const { output } = yield* commandLine.run(["inspect", name], { ...server, terminal: true })
      assert.include(output, "wiped")
      assert.notInclude(output, `${escape}2J`)
    }))

  it.effect("release changes nothing if the mutex has changed hands since the prompt", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const holder = yield* openMutex(server)
      const name = freshName("passed on")
      const first = yield* Scope.make()
      yield* Effect.provideService(holder.acquire(name), Scope.Scope, first)
      const asked = yield* commandLine.start(["release", name, "--force"], { ...server, terminal: true })
      yield* until("it asks", Effect.sync(() => asked.output().includes("(y/N)")))
      yield* Scope.close(first, Exit.void)
      const lease = yield* holder.acquire(name)
      asked.write("y")
      assert.strictEqual(yield* asked.ended, 1)
      assert.include(asked.output(), `Nothing was changed: ${lease.id} now owns`)
      yield* lease.ensure
    }))

  it.effect("release asks for confirmation on a terminal, and changes nothing if the user says no", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const holder = yield* openMutex(server)
      const name = freshName("stuck")
      const lease = yield* holder.acquire(name)

      const reply = Effect.fnUntraced(function*(key: string) {
        const asked = yield* commandLine.start(["release", name, "--force"], { ...server, terminal: true })
        yield* until("it asks", Effect.sync(() => asked.output().includes("(y/N)")))
        asked.write(key)
        return { code: yield* asked.ended, output: asked.output() }
      }, Effect.scoped)

      const no = yield* reply("n")
      assert.strictEqual(no.code, 1)
      assert.include(no.output, "Nothing was changed")
      assert.isTrue(yield* lease.isHeld)
      const yes = yield* reply("y")
      assert.strictEqual(yes.code, 0, yes.output)
      assert.include(yes.output, lease.id)
      assert.strictEqual((yield* lease.lost).reason._tag, "ForcedRelease")

      for (const flags of [[], ["--force", "--yes"]]) {
        const repeated = yield* commandLine.run(["release", name, ...flags], server)
        assert.strictEqual(repeated.code, 1)
        assert.include(repeated.errors, "Nobody owns")
      }
    }))

  it.effect("release without --force or --yes changes nothing and names the missing flags", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const holder = yield* openMutex(server)
      const name = freshName("kept")
      const lease = yield* holder.acquire(name)
      for (
        const [passed, missing] of [
          [[], "takes --force and --yes."],
          [["--yes"], "takes --force."],
          [["--force"], "takes --yes."]
        ] as const
      ) {
        const refused = yield* commandLine.run(["release", name, ...passed], server)
        assert.strictEqual(refused.code, 64)
        assert.include(refused.errors, missing)
      }
      assert.strictEqual((yield* commandLine.json(["inspect", name], server)).owner, lease.id)
      const freed = yield* commandLine.json(["release", name, "--force", "--yes"], server)
      assert.deepStrictEqual(freed, { name, takenFrom: lease.id })
    }))

  it.effect("watch draws a timeline of owners on a terminal, and restores the screen at the end", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const [first, second] = yield* Effect.all([openMutex(server), openMutex(server)])
      const name = freshName("watched")
      const watching = yield* commandLine.start(["watch", name, "--poll-interval", "50ms"], {
        ...server,
        terminal: true
      })
      yield* until("it draws", Effect.sync(() => watching.output().includes("nobody")))
      const owners: Array<string> = []
      for (const mutex of [first, second]) {
        yield* Effect.scoped(Effect.gen(function*() {
          owners.push((yield* mutex.acquire(name)).id)
          yield* until("watch shows the owner", Effect.sync(() => watching.output().includes(owners.at(-1)!)))
          yield* Effect.sleep("200 millis")
        }))
      }
      // oxlint-disable-next-line no-control-regex -- colours
      const drawn = () => watching.output().replace(/\u001B\[[0-9;]*m/g, "")
      yield* until("the timeline shows both owners, then nobody", Effect.sync(() => /·+A+·*B+·/.test(drawn())))
      yield* until("its release", Effect.sync(() => drawn().includes(`Released   ${owners[1]}`)))
      watching.write("\u0003")
      assert.strictEqual(yield* watching.ended, 130)
      assert.include(watching.output(), `${escape}?1049h`)
      assert.match(watching.output(), /\?25h[^\n]*\?1049l\s*$/)
    }))

  it.effect("watch prints events if the output is not a terminal", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const holder = yield* openMutex(server)
      const name = freshName("followed")
      const one = yield* commandLine.start(["watch", name, "--json", "--for", "20s"], server)
      const all = yield* commandLine.start(["watch", "--json", "--poll-interval", "50ms", "--for", "20s"], server)
      const linesOf = (run: commandLine.Run) =>
        run.output().split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))
      const id = yield* Effect.scoped(Effect.gen(function*() {
        const { id } = yield* holder.acquire(name)
        yield* until(
          "the watch of one mutex shows the owner",
          Effect.sync(() => linesOf(one).some(({ owner }) => owner === id))
        )
        yield* until(
          "the watch of all mutexes shows the owner",
          Effect.sync(() => linesOf(all).some(({ owner }) => owner === id))
        )
        return id
      }))
      yield* until(
        "the watch of one mutex shows the release",
        Effect.sync(() => linesOf(one).some(({ _tag, owner }) => _tag === "Released" && owner === id))
      )
      yield* until(
        "the watch of all mutexes shows a free mutex",
        Effect.sync(() => linesOf(all).some((line) => line.name === name && line.owner === null))
      )
    }))

  it.effect("--poll-interval also sets how often the events of one mutex are read", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const polls = Effect.map(
        server.send("INFO", "commandstats"),
        (text) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(text))?.[1] ?? 0)
      )
      yield* commandLine.start(["watch", "m", "--json", "--poll-interval", "50ms"], server)
      yield* until("it polls", Effect.map(polls, (count) => count > 1))
      const [took] = yield* Effect.timed(until("it polls 15 more times", Effect.map(polls, (count) => count > 16)))
      // Without the option, `Mutex.events` polls once a second
      assert.isBelow(Duration.toMillis(took), 10_000)
    }))

  it.effect("watch reports a server outage and continues", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const lines = yield* commandLine.start(["watch", "--json", "--poll-interval", "50ms"], server)
      const drawn = yield* commandLine.start(["watch", "--poll-interval", "50ms"], { ...server, terminal: true })
      const before = yield* openMutex(server)
      const name = freshName("before")
      yield* before.acquire(name)
      yield* until(
        "both watches show the owner",
        Effect.sync(() => lines.output().includes(name) && drawn.output().includes(name))
      )
      yield* server.kill()
      yield* until(
        "both watches report the outage",
        Effect.sync(() => lines.output().includes("\"lost\":") && drawn.output().includes("no reply:"))
      )
      yield* server.restart
      const after = yield* openMutex(server)
      const next = freshName("after")
      yield* after.acquire(next)
      yield* until("both continue", Effect.sync(() => lines.output().includes(next) && drawn.output().includes(next)))
      const lost = lines.output().split("\n").filter((line) => line.includes("\"lost\":"))
      assert.lengthOf(lost, 1)
    }))

  it.effect("watch stops after --for", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      assert.strictEqual((yield* commandLine.run(["watch", "--for", "100ms"], server)).code, 0)
    }))

  it.effect("exit codes and messages distinguish invalid arguments from outages", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      for (
        const args of [
          ["inspect"],
          ["no-such"],
          ["list", "--no-such"],
          ["inspect", " "],
          ["watch", "--poll-interval", "fast"],
          ["watch", "--poll-interval", "0s"],
          [
            "list",
            "--sentinel",
            "localhost:1"
          ]
        ]
      ) {
        const { code, errors, output } = yield* commandLine.run(args, server)
        assert.strictEqual(code, 64, `${args.join(" ")}: ${output}${errors}`)
        assert.isNotEmpty(errors)
        assert.notInclude(output + errors, "USAGE")
        const inJson = yield* commandLine.run([...args, "--json"], server)
        assert.strictEqual(inJson.errors, "", args.join(" "))
        assert.hasAllKeys(JSON.parse(inJson.output).error, ["tag", "message"])
      }
      const both = yield* commandLine.run(["run", "x", "--timeout", "1s", "--if-available", "--", "true"], server)
      assert.strictEqual(both.code, 64)
      const empty = yield* commandLine.run(["run", "x", "--", ""], server)
      assert.deepStrictEqual([empty.code, empty.errors.trim()], [64, "effect-simba: The command is empty."])
      // The advice names the program's flags, not library options
      const single = yield* commandLine.run(["list", "--cluster"], server)
      assert.strictEqual(single.code, 69)
      assert.include(single.errors, "remove --cluster")
      for (const json of [["--json"], ["--json=true"], ["--json", "--", "x"]]) {
        const unreachable = yield* commandLine.run(["list", "--url", "redis://127.0.0.1:1", ...json], server)
        assert.strictEqual(unreachable.code, 69)
        assert.strictEqual(unreachable.errors, "", json.join(" "))
        assert.strictEqual(JSON.parse(unreachable.output).error.tag, "BackendError")
      }
    }))

  it.effect("help, version and completions do not need a server", () =>
    Effect.gen(function*() {
      const nowhere = { url: "redis://127.0.0.1:1" }
      for (
        const [args, text] of [[["--help"], "SUBCOMMANDS"], [["--version"], "effect-simba v"], [[], "USAGE"]] as const
      ) {
        const { code, output } = yield* commandLine.run(args, nowhere)
        assert.strictEqual(code, 0)
        assert.include(output, text)
      }
      for (const shell of ["bash", "zsh", "fish"]) {
        const { output } = yield* commandLine.run(["--completions", shell], nowhere)
        for (const command of ["list", "release", "redrive"]) assert.include(output, command)
      }
    }))

  it.effect("doctor prints a report, and exits with 1 if a setting must be changed", () =>
    Effect.gen(function*() {
      const good = yield* RedisServer.start({ args: ["--appendonly yes"] })
      const healthy = yield* commandLine.run(["doctor"], good)
      assert.strictEqual(healthy.code, 0, healthy.output)
      for (const check of ["version", "eviction", "permissions", "messages"]) assert.include(healthy.output, check)
      yield* good.send("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
      const ill = yield* commandLine.run(["doctor", "--json"], good)
      assert.strictEqual(ill.code, 1)
      const report: RedisDoctor.Report = JSON.parse(ill.output)
      assert.isTrue(report.isUsable)
      const warnings = report.findings.filter(({ status }) => status === "warning")
      assert.deepStrictEqual(warnings.map(({ check }) => check), ["eviction"])
      assert.deepStrictEqual(yield* good.send("KEYS", "*"), [])
    }))

  it.effect("bench measures uncontended acquires and hand-offs, and leaves no keys behind", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const rows = yield* commandLine.json(["bench", "--for", "200ms"], server)
      assert.deepStrictEqual(rows.map(({ name }: { name: string }) => name), ["acquire and release", "hand-off"])
      for (const { count, p50 } of rows) {
        assert.isAtLeast(count, 10)
        assert.isAbove(p50, 0)
      }
      assert.deepStrictEqual(yield* commandLine.json(["list", "effect-simba:bench:"], server), [])
    }))
})
