/** Uses the promise API on a real server, as a program without Effect would. */
import { SimbaError } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { createSimba, type Lease, type LogLine, type Simba } from "@effect-simba/redis/promise"
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Exit, Layer, Scope } from "effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { Redis } from "ioredis"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { RedisServer } from "../../support/redisServer.ts"

const scope = Scope.makeUnsafe()
let url: string
let send: (...args: ReadonlyArray<string>) => Promise<unknown>

beforeAll(async () => {
  const context = await Effect.runPromise(Layer.buildWithScope(RedisServer.layer, scope))
  const server = Context.get(context, RedisServer)
  url = server.url
  send = (...args) => Effect.runPromise(server.send(...args))
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

let names = 0
const freshName = () => `promise-${++names}`

const options = { ttl: "1 second", transition: "1500 millis" } as const

const withSimba = async <A>(use: (simba: Simba) => Promise<A>) => {
  await using simba = await createSimba({ url, ...options })
  return await use(simba)
}

const aborted = (signal: AbortSignal) =>
  new Promise<unknown>((resolve) => signal.addEventListener("abort", () => resolve(signal.reason)))

const rejection = (promise: Promise<unknown>) =>
  promise.then(() => assert.fail("it resolved"), (error: unknown) => error)

const until = async (holds: () => boolean) => {
  const end = performance.now() + 20_000
  while (!holds()) {
    assert.isBelow(performance.now(), end, "not within 20 seconds")
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

describe("@effect-simba/redis/promise", () => {
  it("runs one piece of work at a time under a lock, with increasing tokens, and returns the result", () =>
    withSimba(async (simba) => {
      const name = freshName()
      let inside = 0
      const one = () =>
        simba.withLock(name, { timeout: "10 seconds" }, async (lease) => {
          assert.strictEqual(++inside, 1)
          assert.isTrue(lease.isHeld)
          assert.isAbove(lease.timeLeft, 0)
          lease.ensure()
          await Promise.resolve()
          inside--
          return lease.token
        })
      const tokens = await Promise.all([one(), one(), one()])
      assert.deepStrictEqual(tokens, tokens.toSorted((a, b) => a - b))
      assert.strictEqual(new Set(tokens).size, 3)
    }))

  it("rejects with the error from the work, even if it was thrown synchronously", () =>
    withSimba(async (simba) => {
      const own = new RangeError("own")
      assert.strictEqual(await rejection(simba.withLock(freshName(), () => Promise.reject(own))), own)
      const throws = () => {
        throw own
      }
      assert.strictEqual(await rejection(simba.withLock(freshName(), throws)), own)
    }))

  it("with a timeout of zero, acquires a free mutex and rejects if the mutex is held", () =>
    withSimba(async (simba) => {
      const name = freshName()
      for (let round = 0; round < 100; round++) {
        assert.strictEqual(await simba.withLock(name, { timeout: 0 }, () => Promise.resolve(round)), round)
      }
      await using lease = await simba.acquire(name, { timeout: 0 })
      lease.ensure()
      await withSimba(async (other) => {
        assert.instanceOf(await rejection(other.acquire(name, { timeout: 0 })), SimbaError.AcquireTimeout)
      })
    }))

  it("does not run work without the mutex: a try-acquire reports that, and a timeout rejects", () =>
    withSimba(async (simba) => {
      const name = freshName()
      await using _held = await simba.acquire(name)
      assert.deepStrictEqual(await simba.withLockIfAvailable(name, () => assert.fail("it ran")), { acquired: false })
      const error = await rejection(simba.withLock(name, { timeout: 50 }, () => assert.fail("it ran")))
      assert.instanceOf(error, SimbaError.AcquireTimeout)
      assert.deepStrictEqual(await simba.withLockIfAvailable(freshName(), () => Promise.resolve(undefined)), {
        acquired: true,
        value: undefined
      })
    }))

  it("holds a lease until it is released, and aborts its signal with the reason if the lease is lost", () =>
    withSimba(async (simba) => {
      const name = freshName()
      const first = await simba.acquire(name)
      assert.isFalse(first.signal.aborted)
      await first.release()
      assert.isTrue(first.signal.aborted)
      assert.isFalse(first.isHeld)
      assert.throws(first.ensure, SimbaError.LeaseLost)
      await using second = await simba.acquire(name)
      assert.isAbove(second.token, first.token)
      await send("DEL", `simba:{${name}}`)
      assert.deepInclude(await aborted(second.signal), { _tag: "LeaseLost", reason: { _tag: "Vanished" } })
    }))

  it("aborts and awaits the work when its lease is lost, and rejects with the loss", () =>
    withSimba(async (simba) => {
      const name = freshName()
      let ended = false
      const lost = simba.withLock(name, async (_, signal) => {
        await send("DEL", `simba:{${name}}`)
        assert.instanceOf(await aborted(signal), SimbaError.LeaseLost)
        await new Promise((resolve) => setTimeout(resolve, 50))
        ended = true
      })
      assert.instanceOf(await rejection(lost), SimbaError.LeaseLost)
      assert.isTrue(ended)
    }))

  it("logs the rejection of aborted work unless it is the abort itself", () =>
    withSimba(async (simba) => {
      const printed = vi.spyOn(console, "log").mockImplementation(() => undefined)
      try {
        const ends: ReadonlyArray<(lease: Lease, signal: AbortSignal) => unknown> = [
          (_, signal) => signal.reason,
          () => Object.assign(new Error("of an API"), { name: "AbortError" }),
          (lease) => {
            try {
              return lease.ensure()
            } catch (error) {
              return error
            }
          },
          () => new Error("the disk is full")
        ]
        const logged: Array<number> = []
        for (const how of ["abort", "loss"]) {
          for (const end of ends) {
            const name = freshName()
            const controller = new AbortController()
            const running = rejection(simba.withLock(name, { signal: controller.signal }, async (lease, signal) => {
              if (how === "abort") controller.abort(new Error("the client went away"))
              else await send("DEL", `simba:{${name}}`)
              if (!signal.aborted) await aborted(signal)
              throw end(lease, signal)
            }))
            printed.mockClear()
            const error = await running
            if (how === "loss") assert.instanceOf(error, SimbaError.LeaseLost)
            else assert.strictEqual((error as Error).message, "the client went away")
            const lines = printed.mock.calls.map((call) => call.join(" "))
            logged.push(lines.filter((line) => line.includes("Work failed after it was aborted")).length)
            if (end === ends[3]) assert.include(lines.join(), "the disk is full")
          }
        }
        // Only the caller aborts, so the lease is still held and `ensure` does not throw
        assert.deepStrictEqual(logged, [0, 0, 1, 1, 0, 0, 0, 1])
      } finally {
        printed.mockRestore()
      }
    }))

  it("passes every log line to the application's function, even if that throws", async () => {
    const lines: Array<LogLine> = []
    const printed = vi.spyOn(console, "log").mockImplementation(() => undefined)
    try {
      const log = (line: LogLine) => {
        lines.push(line)
        throw new Error("the log is full")
      }
      await using simba = await createSimba({ url, ...options, log })
      const name = freshName()
      const lost = await rejection(simba.withLock(name, async (_, signal) => {
        await send("DEL", `simba:{${name}}`)
        await aborted(signal)
        throw new Error("the disk is full")
      }))
      assert.instanceOf(lost, SimbaError.LeaseLost)
      const work = lines.find(({ message }) => message === "Work failed after it was aborted")!
      assert.deepInclude(work, { level: "error", fields: { mutex: name, lease: lost.id, token: lost.token } })
      assert.strictEqual((work.error as Error).message, "the disk is full")
      assert.includeMembers(lines.map(({ level }) => level), ["debug", "warn", "error"])
      assert.deepStrictEqual(printed.mock.calls, [])
    } finally {
      printed.mockRestore()
    }
  })

  it("puts its metrics in the process's registry, from which a program without Effect can export them", () =>
    withSimba(async (simba) => {
      const granted = async () => {
        const text = await Effect.runPromise(PrometheusMetrics.format())
        return Number(/^simba_mutex_acquire_attempts\{outcome="granted"\} (\d+)$/m.exec(text)?.[1] ?? 0)
      }
      const before = await granted()
      await simba.withLock(freshName(), async () => {})
      assert.strictEqual(await granted(), before + 1)
    }))

  it("stops waiting and leaves the queue when the caller's signal aborts", () =>
    withSimba(async (simba) => {
      const name = freshName()
      const held = await simba.acquire(name)
      const controller = new AbortController()
      const waits = [
        simba.withLock(name, { signal: controller.signal }, () => assert.fail("it ran")),
        simba.acquire(name, { signal: controller.signal })
      ].map(rejection)
      const reason = new Error("the client went away")
      controller.abort(reason)
      assert.deepStrictEqual(await Promise.all(waits), [reason, reason])
      await held.release()
      assert.isTrue((await simba.withLockIfAvailable(name, () => Promise.resolve())).acquired)
    }))

  it("does not start work if its signal aborts during the grant", () =>
    withSimba(async (simba) => {
      const controller = new AbortController()
      const reason = new Error("not needed any more")
      let isRun = false
      // The two acquires share one request and one reply
      const [first, second] = [freshName(), freshName()]
      const aborting = simba.withLock(first, async () => controller.abort(reason))
      const needless = simba.withLock(second, { signal: controller.signal }, async () => void (isRun = true))
      await aborting
      assert.strictEqual(await rejection(needless), reason)
      assert.isFalse(isRun)
      await simba.withLock(second, { timeout: 0 }, async () => undefined)
    }))

  it("has one leader at a time, and another one when the leader stops or its work fails", () =>
    withSimba(async (simba) => {
      const name = freshName()
      const other = await createSimba({ url, ...options })
      const runs: Array<string> = []
      const work = (who: string) => async (_: unknown, signal: AbortSignal) => {
        runs.push(who)
        if (runs.length === 2) throw new Error("the second run fails, on purpose")
        await aborted(signal)
      }
      const first = await simba.lead(name, work("a"))
      await until(() => first.isLeader && runs.length === 1)
      const second = await other.lead(name, work("b"))
      assert.isFalse(second.isLeader)
      await first.stop()
      await until(() => runs.length === 3)
      assert.deepStrictEqual(runs, ["a", "b", "b"])
      assert.isFalse(first.isLeader)
      await other.close()
      assert.isFalse(second.isLeader)
    }))

  it("work can stop its own contender without waiting for the stop, after which another process leads", () =>
    withSimba(async (simba) => {
      const name = freshName()
      const runs: Array<string> = []
      let stopped: Promise<void> | undefined
      const first = await simba.lead(name, async () => {
        runs.push("a")
        stopped = first.stop()
      })
      await using _second = await simba.lead(name, async () => void runs.push("b"))
      await until(() => runs.length === 2)
      await stopped
      assert.deepStrictEqual(runs, ["a", "b"])
    }))

  it("runs work on a cron schedule and refuses an invalid expression", () =>
    withSimba(async (simba) => {
      let runs = 0
      await using _cron = await simba.lead(freshName(), { cron: "* * * * * *" }, () => Promise.resolve(++runs))
      const error = await rejection(simba.lead(freshName(), { cron: "never" }, () => Promise.resolve()))
      assert.instanceOf(error, SimbaError.InvalidConfig)
      await until(() => runs >= 2)
    }))

  it("refuses options for a cron job without `cron`", () =>
    withSimba(async (simba) => {
      for (const option of [{ timeZone: "Europe/Vienna" }, { catchUp: "1 hour" }] as const) {
        const error = await rejection(simba.lead(freshName(), option, () => Promise.resolve()))
        assert.deepInclude(error, { _tag: "InvalidConfig", option: Object.keys(option)[0], problem: "it needs cron" })
      }
      await using _leader = await simba.lead(freshName(), { timeZone: undefined }, () => Promise.resolve())
    }))

  it("`close` aborts and awaits work, releases mutexes, and makes later calls reject", async () => {
    const simba = await createSimba({ url, ...options })
    const name = freshName()
    let ended = false
    let begun = false
    const work = rejection(simba.withLock(name, async (_, signal) => {
      begun = true
      await aborted(signal)
      await new Promise((resolve) => setTimeout(resolve, 50))
      ended = true
    }))
    await until(() => begun)
    await simba.close()
    assert.isTrue(ended)
    assert.instanceOf(await work, SimbaError.BackendError)
    assert.instanceOf(await rejection(simba.acquire(name)), SimbaError.BackendError)
    assert.strictEqual(await send("EXISTS", `simba:{${name}}`), 0)
    await simba.close()
  })

  it("uses an application's client and leaves it open", async () => {
    const client = new Redis(url)
    const name = freshName()
    const simba = await createSimba({ client, ...options })
    const held = await simba.acquire(name)
    assert.strictEqual(await client.get(`simba:{${name}}`), held.id)
    await simba.close()
    assert.strictEqual(await client.ping(), "PONG")
    client.disconnect()
  })

  it("`commandTimeout` applies to the requests on an application's client, unless `redis` has its own", async () => {
    const client = new Redis(url)
    try {
      for (const redis of [undefined, { commandTimeout: 200 }]) {
        await using simba = await createSimba({ client, commandTimeout: 300, redis, ...options })
        await send("CLIENT", "PAUSE", "10000", "WRITE")
        const error = await rejection(simba.acquire(freshName(), { timeout: 0 }))
        await send("CLIENT", "UNPAUSE")
        assert.include((error as Error).message, `within ${redis?.commandTimeout ?? 300}ms`)
      }
    } finally {
      client.disconnect()
    }
  })

  it("refuses an invalid name and invalid work", () =>
    withSimba(async (simba) => {
      const nothing = undefined as never
      type Lock = (name: string, work?: () => Promise<void>) => Promise<unknown>
      for (const lock of [simba.withLock, simba.withLockIfAvailable, simba.lead] as unknown as ReadonlyArray<Lock>) {
        assert.instanceOf(await rejection(lock(nothing, () => Promise.resolve())), SimbaError.InvalidName)
        assert.instanceOf(await rejection(lock(freshName(), nothing)), SimbaError.InvalidConfig)
        assert.instanceOf(await rejection(lock(freshName())), SimbaError.InvalidConfig)
      }
      assert.instanceOf(await rejection(simba.acquire(nothing)), SimbaError.InvalidName)
    }))

  it("rejects a signal or options of the wrong type", () =>
    withSimba(async (simba) => {
      const name = freshName()
      let isRun = false
      const work = async () => void (isRun = true)
      const bad = { signal: {} as AbortSignal }
      for (
        const call of [
          () => simba.withLock(name, bad, work),
          () => simba.withLockIfAvailable(name, bad, work),
          () => simba.acquire(name, bad),
          () => createSimba(null as never),
          () => createSimba({ client: null as never }),
          () => createSimba({ url, log: console as never })
        ]
      ) assert.instanceOf(await rejection(call()), SimbaError.InvalidConfig)
      assert.isFalse(isRun)
      await simba.withLock(name, { signal: null as never, timeout: 0 }, work)
      assert.isTrue(isRun)
    }))

  it("reports mistakes in the options even if the server is down", async () => {
    const down = "redis://127.0.0.1:1"
    const bad = { ttl: "1 second", transition: 0 } as const
    assert.instanceOf(await rejection(createSimba({ url: down, ...bad })), SimbaError.InvalidConfig)
    const client = new Redis(down, { lazyConnect: true })
    assert.instanceOf(await rejection(createSimba({ client, ...bad })), SimbaError.InvalidConfig)
    client.disconnect()
    const env = ConfigProvider.fromEnv({ env: { SIMBA_REDIS_TRANSITION: "1ms", REDIS_URL: down } })
    const building = Layer.build(RedisMutex.layerFromEnv()).pipe(
      Effect.scoped,
      Effect.provideService(ConfigProvider.ConfigProvider, env)
    )
    assert.instanceOf(await Effect.runPromise(Effect.flip(building)), SimbaError.InvalidConfig)
  })

  it("lets the process exit if it cannot connect, because it leaves no timers behind", async () => {
    const program = `import { createSimba } from "@effect-simba/redis/promise"
      await createSimba({ url: "redis://127.0.0.1:1" }).catch((error) => console.log(error._tag))
      await new Promise(setImmediate)
      console.log(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length)`
    const args = ["--input-type=module", "--eval", program]
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname })
    assert.strictEqual(stdout, "BackendError\n0\n")
  })

  it("refuses impossible options before connecting", async () => {
    assert.instanceOf(await rejection(createSimba({ url, ttl: -1 })), SimbaError.InvalidConfig)
    assert.instanceOf(await rejection(createSimba({ url: "redis://127.0.0.1:1" })), SimbaError.BackendError)
  })
})
