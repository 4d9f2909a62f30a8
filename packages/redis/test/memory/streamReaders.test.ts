/** A service's blocking reads, command by command, on a fake connection. */
import { BackendError } from "@effect-simba/core/SimbaError"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, type Duration, Effect, Exit, Fiber, Logger } from "effect"
import { RedisError } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as blockingRead from "../../src/streams/internal/blockingRead.ts"

type Reply = ReadonlyArray<readonly [stream: string, entries: ReadonlyArray<readonly [string, ReadonlyArray<string>]>]>

const id = (n: number) => EntryId.make(`${n}-0`)

const idsOf = (messages: ReadonlyArray<RawMessage>) => messages.map(({ id }) => Number(id.split("-")[0]))

/** The reply to a read that returns these messages from a data stream. */
const replyOf = (
  stream: string,
  ...ns: ReadonlyArray<number>
): Reply => [[stream, ns.map((n) => [`${n}-0`, ["n", "1"]])]]

interface Options {
  readonly isCluster?: boolean
  readonly maxReaders?: number
  /** The reply to a separate, non-blocking read of a data stream. Default: no messages. */
  readonly messages?: (stream: string, count: number) => Effect.Effect<ReadonlyArray<RawMessage>, BackendError>
}

/**
 * A connection whose blocking reads end only when the test says so. `commands` returns the commands since its last
 * call.
 */
const setup = Effect.fnUntraced(function*({ isCluster = false, maxReaders = 4, messages }: Options = {}) {
  const commands: Array<string> = []
  const reads: Array<Deferred.Deferred<unknown, RedisError>> = []
  let connections = 0
  const connection = () => {
    const client = ++connections
    let open: Deferred.Deferred<unknown, RedisError> | undefined
    return {
      client,
      send: (command: string, ...args: ReadonlyArray<string>) =>
        Effect.suspend((): Effect.Effect<unknown, RedisError> => {
          if (command === "CLIENT") return Effect.succeed(client)
          const names = args.slice(5)
          const half = names.length / 2
          const named = half > 6 ?
            `${half} data streams` :
            names.slice(0, half).map((name, i) => `${name}>${names[half + i]}`).join(" ")
          commands.push(`XREAD ${args[1]} ${args[3]} ${named}`)
          open = Deferred.makeUnsafe()
          reads.push(open)
          return Deferred.await(open)
        }),
      end: () => open !== undefined && Deferred.doneUnsafe(open, Effect.succeed(null))
    }
  }
  const made: Array<ReturnType<typeof connection>> = []
  const redis = {
    reserve: Effect.sync(() => {
      const one = connection()
      made.push(one)
      return one
    }),
    send: (command: string, ...args: ReadonlyArray<string>) =>
      Effect.sync(() => {
        commands.push([command, ...args].join(" "))
        made.find(({ client }) => String(client) === args[1])?.end()
        return 1
      })
  }
  const awaitMessages = yield* blockingRead.make(
    { isCluster, redis } as never,
    (stream, _, count) => messages?.(stream, count) ?? Effect.succeed([]),
    maxReaders
  )
  const wait = (stream: string, after = 0, count = 10) =>
    Effect.forkChild(awaitMessages(StreamName.make(stream), id(after), count), { startImmediately: true })
  return {
    wait,
    commands: (time: Duration.Input = 0) => Effect.map(TestClock.adjust(time), () => commands.splice(0)),
    connections: () => connections,
    /** Ends the most recent read. */
    reply: (reply: Reply | null) => Deferred.succeed(reads.at(-1)!, reply),
    fail: (text: string) =>
      Deferred.fail(reads.at(-1)!, new RedisError({ cause: Object.assign(new Error(text), { name: "ReplyError" }) })),
    crash: Effect.suspend(() => Deferred.die(reads.at(-1)!, new Error("a defect"))),
    interrupt: Effect.suspend(() => Deferred.interrupt(reads.at(-1)!))
  }
})

describe("a blocking read", () => {
  it.effect("requests as many messages as its waiters want, up to 100 per data stream and 2,000 in total", () =>
    Effect.gen(function*() {
      for (const [counts, expected] of [[[1], 1], [[5, 20, 7], 20], [[100, 500], 100]] as const) {
        const { commands, wait } = yield* setup()
        for (const [i, count] of counts.entries()) yield* wait(`s${i}`, 0, count)
        const names = counts.map((_, i) => `s${i}>0-0`).join(" ")
        assert.deepStrictEqual(yield* commands(), [`XREAD ${expected} 5000 ${names}`])
      }
      const { commands, wait } = yield* setup()
      for (let i = 0; i < 120; i++) yield* wait(`s${i}`, 0, 100)
      assert.deepStrictEqual(yield* commands(), ["XREAD 17 5000 120 data streams"])
    }))

  it.effect("starts at its waiters' smallest position, and delivers to each waiter what it requested", () =>
    Effect.gen(function*() {
      const { commands, reply, wait } = yield* setup()
      const waiters = [yield* wait("s", 7), yield* wait("s", 3, 2), yield* wait("s", 9)]
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 s>3-0"])
      yield* reply(replyOf("s", 4, 6, 8, 9))
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(idsOf(yield* Fiber.join(waiters[0]!)), [8, 9])
      assert.deepStrictEqual(idsOf(yield* Fiber.join(waiters[1]!)), [4, 6])
      // The third waiter keeps waiting
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 s>9-0"])
      yield* reply(replyOf("s", 10))
      assert.deepStrictEqual(idsOf(yield* Fiber.join(waiters[2]!)), [10])
    }))

  it.effect("continues after a delivery, but without data streams that have had no waiter for five seconds", () =>
    Effect.gen(function*() {
      const { commands, reply, wait } = yield* setup()
      const first = yield* wait("s")
      yield* wait("other")
      yield* commands()
      yield* reply(replyOf("s", 4))
      assert.deepStrictEqual(idsOf(yield* Fiber.join(first)), [4])
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 s>4-0 other>0-0"])
      // A returning waiter joins the read without a command
      const second = yield* wait("s", 4)
      assert.deepStrictEqual(yield* commands("1 second"), [])
      yield* Fiber.interrupt(second)
      yield* TestClock.adjust("5 seconds")
      yield* reply(null)
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 s>4-0 other>0-0"])
      yield* TestClock.adjust("1 millis")
      yield* reply(null)
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 other>0-0"])
    }))

  it.effect("serves a waiter only once if another one wants more messages, and leaves the rest to a separate read", () =>
    Effect.gen(function*() {
      const sizes: Array<number> = []
      const { commands, reply, wait } = yield* setup({
        messages: (_, count) =>
          Effect.sync(() => (sizes.push(count), sizes.length < 3 ? [] : [{ id: id(2), fields: [] }]))
      })
      const first = yield* wait("huge", 0, 1)
      yield* wait("small", 0, 100)
      assert.deepStrictEqual(yield* commands(), ["XREAD 100 5000 huge>0-0 small>0-0"])
      yield* reply(replyOf("huge", 1, 2, 3))
      assert.deepStrictEqual(idsOf(yield* Fiber.join(first)), [1])
      assert.deepStrictEqual(yield* commands(), ["XREAD 100 5000 small>0-0"])
      assert.deepStrictEqual(idsOf(yield* Fiber.join(yield* wait("huge", 1, 1))), [2])
      assert.deepStrictEqual(sizes, [1, 100, 1])
    }))

  it.effect("drops a data stream whose messages have no waiters, so the next waiter starts with a separate read", () =>
    Effect.gen(function*() {
      let asked = 0
      const { commands, reply, wait } = yield* setup({
        messages: () => Effect.sync(() => ++asked === 3 ? [{ id: id(5), fields: [] }] : [])
      })
      const first = yield* wait("s")
      yield* wait("other")
      yield* commands()
      yield* reply(replyOf("s", 4))
      yield* Fiber.join(first)
      yield* commands()
      yield* reply(replyOf("s", 5))
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 other>0-0"])
      assert.deepStrictEqual(idsOf(yield* Effect.flatMap(wait("s", 4), Fiber.join)), [5])
      assert.strictEqual(asked, 3)
    }))

  it.effect("is unblocked after a millisecond if it does not cover a waiter", () =>
    Effect.gen(function*() {
      const { commands, wait } = yield* setup()
      yield* wait("s", 5)
      yield* commands("1 second")
      // The read from 5 covers position 6
      yield* wait("s", 6)
      assert.deepStrictEqual(yield* commands("1 second"), [])
      yield* wait("s", 4)
      yield* wait("other")
      assert.deepStrictEqual(yield* commands("999 micros"), [])
      assert.deepStrictEqual(yield* commands("1 micros"), ["CLIENT UNBLOCK 1", "XREAD 10 5000 s>4-0 other>0-0"])
      assert.deepStrictEqual(yield* commands("1 second"), [])
    }))

  it.effect("is short on a Cluster, because it is not unblocked there", () =>
    Effect.gen(function*() {
      const { commands, reply, wait } = yield* setup({ isCluster: true })
      yield* wait("s")
      yield* commands()
      yield* wait("other")
      assert.deepStrictEqual(yield* commands("200 millis"), [])
      yield* reply(null)
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 250 s>0-0 other>0-0"])
    }))

  it.effect("is resent if there is no reply within two seconds of its scheduled end", () =>
    Effect.gen(function*() {
      const { commands, wait } = yield* setup()
      yield* wait("s")
      yield* commands()
      assert.deepStrictEqual(yield* commands("7049 millis"), [])
      assert.deepStrictEqual(yield* commands("1 millis"), ["XREAD 10 5000 s>0-0"])
    }))
})

describe("readers", () => {
  it.effect("have 128 data streams each, or more if no connections are left", () =>
    Effect.gen(function*() {
      const { commands, connections, wait } = yield* setup({ maxReaders: 2 })
      for (let i = 0; i < blockingRead.readSize; i++) yield* wait(`a${i}`)
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 128 data streams"])
      for (let i = 0; i < blockingRead.readSize; i++) yield* wait(`b${i}`)
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 128 data streams"])
      assert.strictEqual(connections(), 2)
      yield* wait("c0")
      assert.deepStrictEqual(yield* commands("1 millis"), ["CLIENT UNBLOCK 1", "XREAD 10 5000 129 data streams"])
      yield* wait("c1")
      assert.deepStrictEqual(yield* commands("1 millis"), ["CLIENT UNBLOCK 2", "XREAD 10 5000 129 data streams"])
      assert.strictEqual(connections(), 2)
    }))

  it.effect("end when they run out of data streams, and the next waiter starts a new reader", () =>
    Effect.gen(function*() {
      const { commands, connections, reply, wait } = yield* setup()
      const one = yield* wait("s")
      yield* commands()
      yield* Fiber.interrupt(one)
      yield* TestClock.adjust("5001 millis")
      yield* reply(null)
      assert.deepStrictEqual(yield* commands("1 minute"), [])
      yield* wait("s")
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 s>0-0"])
      assert.strictEqual(connections(), 2)
    }))
})

describe("a failed read", () => {
  const outage = "LOADING Redis is loading the dataset in memory"

  it.effect("is retried during an outage while its waiters wait, with a backoff from 50 ms to a second", () =>
    Effect.gen(function*() {
      const { commands, fail, reply, wait } = yield* setup()
      const one = yield* wait("s")
      yield* commands()
      for (const pause of [50, 100, 200, 400, 800, 1000, 1000]) {
        yield* fail(outage)
        assert.deepStrictEqual(yield* commands(pause - 1), [])
        assert.deepStrictEqual(yield* commands("1 millis"), ["XREAD 10 5000 s>0-0"])
      }
      yield* reply(null)
      yield* commands()
      yield* fail(outage)
      assert.deepStrictEqual(yield* commands(50), ["XREAD 10 5000 s>0-0"])
      yield* reply(replyOf("s", 1))
      assert.deepStrictEqual(idsOf(yield* Fiber.join(one)), [1])
    }))

  it.effect("is retried only with data streams that have a waiter", () =>
    Effect.gen(function*() {
      const { commands, fail, wait } = yield* setup()
      const one = yield* wait("s")
      yield* wait("other")
      yield* commands()
      yield* Fiber.interrupt(one)
      yield* fail(outage)
      assert.deepStrictEqual(yield* commands(50), ["XREAD 10 5000 other>0-0"])
    }))

  it.effect("is replaced with a separate read of each data stream after a permanent error", () =>
    Effect.gen(function*() {
      const wrongType = new BackendError({ operation: "read", isRetryable: false, cause: new Error("WRONGTYPE") })
      let isBroken = false
      const { commands, fail, wait } = yield* setup({
        messages: (stream) =>
          Effect.suspend(() =>
            !isBroken || stream === "empty"
              ? Effect.succeed([])
              : stream === "bad"
              ? Effect.fail(wrongType)
              : Effect.succeed([{ id: id(9), fields: [] }])
          )
      })
      const [bad, good, empty] = [yield* wait("bad"), yield* wait("good"), yield* wait("empty")]
      yield* commands()
      isBroken = true
      yield* fail("WRONGTYPE Operation against a key holding the wrong kind of value")
      yield* TestClock.adjust(0)
      assert.strictEqual(yield* Effect.flip(Fiber.join(bad)), wrongType)
      assert.deepStrictEqual(idsOf(yield* Fiber.join(good)), [9])
      assert.isUndefined(empty.pollUnsafe())
      assert.deepStrictEqual(yield* commands(50), ["XREAD 10 5000 empty>0-0"])
    }))

  it.effect("interrupts its waiters if it is interrupted, but serves the next waiter", () =>
    Effect.gen(function*() {
      const { commands, interrupt, reply, wait } = yield* setup({ maxReaders: 1 })
      const one = yield* wait("s")
      yield* commands()
      yield* interrupt
      const exit = yield* Fiber.await(one)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      const two = yield* wait("s")
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 s>0-0"])
      yield* reply(replyOf("s", 1))
      assert.deepStrictEqual(idsOf(yield* Fiber.join(two)), [1])
    }))

  it.effect("fails its waiters if it dies with a defect, but serves the next waiter", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String([message].flat()[0])))
      const { commands, crash, reply, wait } = yield* Effect.provide(setup(), Logger.layer([logger]))
      const one = yield* wait("s")
      yield* commands()
      yield* crash
      const exit = yield* Fiber.await(one)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      assert.deepStrictEqual(lines, ["The message reader crashed; restarting"])
      assert.deepStrictEqual(yield* commands("1 minute"), [])
      const two = yield* wait("s")
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 s>0-0"])
      yield* reply(replyOf("s", 1))
      assert.deepStrictEqual(idsOf(yield* Fiber.join(two)), [1])
    }))
})

describe("a waiter", () => {
  it.effect("receives existing messages immediately, waits through an outage, and fails on a permanent refusal", () =>
    Effect.gen(function*() {
      const outage = new BackendError({ operation: "read", isRetryable: true, cause: new Error("no connection") })
      const refusal = new BackendError({ operation: "read", isRetryable: false, cause: new Error("NOPERM") })
      const { commands, wait } = yield* setup({
        messages: (stream) =>
          stream === "full"
            ? Effect.succeed([{ id: id(1), fields: [] }])
            : Effect.fail(stream === "refused" ? refusal : outage)
      })
      assert.deepStrictEqual(idsOf(yield* Effect.flatMap(wait("full"), Fiber.join)), [1])
      assert.strictEqual(yield* Effect.flip(Effect.flatMap(wait("refused"), Fiber.join)), refusal)
      assert.deepStrictEqual(yield* commands("1 minute"), [])
      yield* wait("unknown")
      assert.deepStrictEqual(yield* commands(), ["XREAD 10 5000 unknown>0-0"])
    }))
})
