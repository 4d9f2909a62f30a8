import { assert, layer } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { freshName, keysOf, RedisServer, until } from "../../support/harness.ts"
import { startNode } from "../../support/nodeProcess.ts"
import type { LogLine, WorkerConfig, WorkerReport } from "../../support/worker.ts"

interface Worker {
  readonly pid: number
  readonly reports: ReadonlyArray<WorkerReport>
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Waits for this report from the worker. */
  readonly said: (tag: WorkerReport["_tag"]) => Effect.Effect<void>
}

const startWorker = (config: WorkerConfig): Effect.Effect<Worker, never, Scope.Scope> =>
  Effect.map(startNode<WorkerReport>("./worker.ts", "SIMBA_TEST_WORKER", config), ({ child, output, reports }) => ({
    pid: child.pid!,
    reports,
    signal: (signal) => Effect.sync(() => void child.kill(signal)),
    said: (tag) =>
      Effect.suspend(() =>
        until(
          `${config.name} says ${tag}; it reported ${JSON.stringify(reports)} ${output()}`,
          Effect.sync(() => reports.some((report) => report._tag === tag))
        )
      )
  }))

/** A mutex, the log that its holders write to, and workers that use both. */
const setting = Effect.fnUntraced(function*(label: string) {
  const server = yield* RedisServer
  const mutex = freshName(label)
  const log = `log of ${mutex}`
  return {
    server,
    mutex,
    worker: (name: string, options: Omit<WorkerConfig, "url" | "name" | "mutex" | "log">) =>
      startWorker({ url: server.url, name, mutex, log, ...options }),
    lines: Effect.map(
      server.send("LRANGE", log, "0", "-1"),
      (lines) => (lines as ReadonlyArray<string>).map((line) => JSON.parse(line) as LogLine)
    ),
    waiting: (count: number) =>
      until(`${count} waiting`, Effect.map(server.send("ZCARD", keysOf(mutex).queue), (n) => n === count))
  }
})

/** Asserts that each holder's lines are contiguous, and that tokens grow from one holder to the next. */
const assertExclusive = (lines: ReadonlyArray<LogLine>) => {
  let holder: LogLine | undefined
  for (const line of lines) {
    const [, act, token, worker] = line
    if (act === "enter") {
      if (holder !== undefined) assert.isAbove(token, holder[2], `tokens grow: ${JSON.stringify(lines)}`)
      holder = line
    } else {
      assert.deepStrictEqual(
        [token, worker],
        [holder?.[2], holder?.[3]],
        `no two holders interleave: ${JSON.stringify(lines)}`
      )
    }
  }
}

const endless = { rounds: 1, writes: 1_000_000 } as const

layer(RedisServer.layer, { excludeTestServices: true })("several processes on one Redis", (it) => {
  it.effect("exclude each other, get increasing tokens, and are all served", () =>
    Effect.gen(function*() {
      const { lines, mutex, server, worker } = yield* setting("exclusion")
      const names = ["a", "b", "c", "d", "e"]
      const rounds = 20
      const go = `go ${mutex}`
      const workers = yield* Effect.forEach(names, (name) => worker(name, { rounds, writes: 2, pauseMillis: 1, go }))
      for (const one of workers) yield* one.said("Ready")
      yield* server.send("SET", go, "1")
      for (const one of workers) yield* one.said("Done")
      const log = yield* lines
      assertExclusive(log)
      assert.deepStrictEqual(
        log.map(([, act]) => act),
        Array.from({ length: names.length * rounds }, () => ["enter", "write", "write", "leave"]).flat()
      )
      const holders = log.filter(([, act]) => act === "enter").map(([, , , worker]) => worker)
      assert.isAbove(
        holders.filter((name, index) => name !== holders[index - 1]).length,
        names.length,
        "every process has had its turns"
      )
      for (const name of names) {
        assert.strictEqual(holders.filter((holder) => holder === name).length, rounds)
      }
      assert.strictEqual(yield* server.send("EXISTS", keysOf(mutex).owner, keysOf(mutex).queue), 0)
    }))

  it.effect(
    "when a holder is killed, the first waiter takes over once the holder's key has expired",
    () =>
      Effect.gen(function*() {
        const { lines, mutex, server, waiting, worker } = yield* setting("killed")
        const holder = yield* worker("holder", { ...endless, pauseMillis: 20 })
        yield* until("it holds", Effect.map(lines, (lines) => lines.length > 0))
        const first = yield* worker("first", { rounds: 1, writes: 1, pauseMillis: 1 })
        yield* waiting(1)
        const second = yield* worker("second", { rounds: 1, writes: 1, pauseMillis: 1 })
        yield* waiting(2)
        // Long enough for at least one renewal
        yield* Effect.sleep("1500 millis")
        yield* holder.signal("SIGKILL")
        const expiry = Number(yield* server.send("PEXPIRETIME", keysOf(mutex).owner))
        assert.isAbove(expiry, 0, "the holder's key is still there")
        yield* first.said("Done")
        yield* second.said("Done")
        const log = yield* lines
        assertExclusive(log)
        const entries = log.filter(([, act]) => act === "enter")
        assert.deepStrictEqual(entries.map(([, , , worker]) => worker), ["holder", "first", "second"])
        const took = entries[1]![0] / 1000 - expiry
        yield* Effect.log(`took over ${took.toFixed(1)} ms after the killed holder's key expired`)
        assert.isAtLeast(took, 0)
      }),
    { tags: ["H6"] }
  )

  it.effect(
    "a holder that resumes after its lease has ended stops before its next write",
    () =>
      Effect.gen(function*() {
        const { lines, waiting, worker } = yield* setting("suspended")
        // A suspended holder has at most one command in flight, and must not send another one when it resumes
        const holder = yield* worker("holder", { ...endless, pauseMillis: 250, commandTimeout: "500 millis" })
        yield* until("it holds", Effect.map(lines, (lines) => lines.length > 0))
        const successor = yield* worker("successor", { rounds: 1, writes: 8, pauseMillis: 100 })
        yield* waiting(1)
        // The holder pauses after each write. Suspend it in such a pause, not between a check and the write that
        // follows.
        const before = (yield* lines).length
        yield* until("the holder has just written", Effect.map(lines, (lines) => lines.length > before))
        yield* holder.signal("SIGSTOP")
        yield* until(
          "the successor has started to work",
          Effect.map(lines, (lines) => lines.some(([, act, , worker]) => act === "write" && worker === "successor"))
        )
        yield* holder.signal("SIGCONT")
        yield* holder.said("Failed")
        const failed = holder.reports.find((report) => report._tag === "Failed")
        assert.strictEqual(failed?.error, "LeaseLost")
        assert.include(["Expired", "BackendGone"], failed?.reason)
        yield* successor.said("Done")
        const log = yield* lines
        assertExclusive(log)
        assert.strictEqual(log.filter(([, act]) => act === "enter").length, 2)
      }),
    { tags: ["L3"] }
  )

  it.effect(
    "a holder interrupts its work when its key is overwritten, and its waiter keeps waiting",
    () =>
      Effect.gen(function*() {
        const { lines, mutex, server, waiting, worker } = yield* setting("taken")
        const holder = yield* worker("holder", { rounds: 1, writes: 1, pauseMillis: 600_000 })
        yield* until("it holds", Effect.map(lines, (lines) => lines.length > 1))
        const successor = yield* worker("successor", { rounds: 1, writes: 1, pauseMillis: 1 })
        yield* waiting(1)
        yield* server.send("SET", keysOf(mutex).owner, "operator", "PX", "3000")
        yield* holder.said("BodyInterrupted")
        assert.isTrue((yield* lines).every(([, , , worker]) => worker === "holder"))
        yield* holder.said("Failed")
        const failed = holder.reports.find((report) => report._tag === "Failed")
        assert.deepStrictEqual([failed?.error, failed?.reason], ["LeaseLost", "TakenOver"])
        yield* successor.said("Done")
        const log = yield* lines
        assertExclusive(log)
        assert.deepStrictEqual(log.map(([, , , worker]) => worker), [
          "holder",
          "holder",
          "successor",
          "successor",
          "successor"
        ])
      }),
    { tags: ["L3"] }
  )
})
