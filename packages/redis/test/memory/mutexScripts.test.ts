/** Edge cases of single mutex scripts on the fake server: their replies, keys, expiries and messages. */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { FakeRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Queue } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as scripts from "../../src/internal/mutex/scripts.generated.ts"

const keys = ["simba:{m}", "simba:{m}:contender", "simba:{m}:fence", "simba:{m}:reserved"] as const
const [owner, queue, fence, reserved] = keys
const id = (n: number, layer = "aaaaaaaaaaaa") => `${n}-${layer}:host-1`
const simba = "1:1@stock"

const server = Layer.fresh(
  FakeRedis.layerClient().pipe(Layer.provideMerge(FakeRedis.layer({ expiryDelay: [0, 0] })))
)

const send = (command: string, ...args: ReadonlyArray<string>) =>
  Redis.use((redis) => redis.send<unknown>(command, ...args))

/** Runs one operation with `acquireAndRelease.lua`. `skipDead` says which dead waiters the script may skip. */
const operateWith = (skipDead: string, code: string, ...operands: ReadonlyArray<string>) =>
  send("EVAL", scripts.acquireAndRelease.text.lua, "4", ...keys, `${code} ${skipDead} 9000 1500`, ...operands)

const operate = (code: string, ...operands: ReadonlyArray<string>) => operateWith("1", code, ...operands)

/** Releases the mutex by force if `by` owns it, or if `by` is empty and the mutex is unowned. */
const force = (by: string) => send("EVAL", scripts.forceRelease.text.lua, "4", ...keys, "1500", "1", by)

const tryIt = (by: string) => Effect.map(operate("t", by), String)
const confirm = (by: string, token: string, lease: number) => operate("c", by, token, String(lease))
const wait = (by: string, lease: number, ticket = "") =>
  Effect.map(operate("a", by, "wait", String(lease), "1500", ticket, "0"), (reply) => reply as Array<string | number>)

describe("a waiter", () => {
  it.effect("extends the queue's expiry beyond its sleep and never shortens it", () =>
    Effect.gen(function*() {
      yield* tryIt(id(1))
      yield* wait(id(2), 3000)
      assert.strictEqual(yield* send("PTTL", queue), 9000 + 3000 + 2 * 1500)
      yield* wait(id(3), 1000)
      assert.strictEqual(yield* send("PTTL", queue), 9000 + 3000 + 2 * 1500)
      yield* TestClock.adjust("2 seconds")
      yield* wait(id(3), 6000)
      assert.strictEqual(yield* send("PTTL", queue), 7000 + 6000 + 2 * 1500)
      // Extensions by less than a confirm period are skipped
      yield* wait(id(4), 7000)
      assert.strictEqual(yield* send("PTTL", queue), 7000 + 6000 + 2 * 1500)
      yield* wait(id(4), 7501)
      assert.strictEqual(yield* send("PTTL", queue), 7000 + 7501 + 2 * 1500)
    }).pipe(Effect.provide(server)))

  it.effect("queues behind all others, even if their tickets are ahead of the clock", () =>
    Effect.gen(function*() {
      yield* tryIt(id(1))
      yield* send("ZADD", queue, "1750000100.500001", id(2))
      const [, ticket] = yield* wait(id(3), 1000)
      assert.strictEqual(ticket, 1750000100500002)
      assert.deepStrictEqual(yield* send("ZRANGE", queue, "0", "-1"), [id(2), id(3)])
    }).pipe(Effect.provide(server)))

  it.effect("counts the waiters ahead of it, and detects whether the first one is a Simba contender", () =>
    Effect.gen(function*() {
      yield* tryIt(id(1))
      const place = (n: number) => Effect.map(wait(id(n), 1000), (reply) => reply.slice(2, 4))
      assert.deepStrictEqual(yield* place(2), [0, 0])
      assert.deepStrictEqual(yield* place(3), [1, 0])
      yield* send("ZADD", queue, "1700000010", simba)
      assert.deepStrictEqual(yield* place(4), [3, 1])
      assert.deepStrictEqual(yield* place(2), [1, 1])
      yield* send("ZADD", queue, "1700000000.000001", id(5))
      assert.deepStrictEqual(yield* place(4), [4, 0])
    }).pipe(Effect.provide(server)))

  it.effect("never has a whole second as its ticket, because those belong to Simba contenders", () =>
    Effect.gen(function*() {
      yield* tryIt(id(1))
      const [, ticket] = yield* wait(id(2), 1000, "1700000000.000000")
      assert.strictEqual(ticket, 1700000000000001)
    }).pipe(Effect.provide(server)))

  it.effect("leaves a free mutex to the Simba contender with the reservation until that contender owns the mutex", () =>
    Effect.gen(function*() {
      yield* send("SET", reserved, simba, "PX", "1500")
      const [ownership, , , holdsBack] = yield* wait(id(2), 1000)
      assert.deepStrictEqual([ownership, holdsBack], ["@@", 1])
      yield* send("SET", owner, "2:2@stock", "PX", "4000")
      yield* wait(id(2), 1000)
      assert.strictEqual(yield* send("GET", reserved), simba)
      yield* send("SET", owner, simba, "PX", "4000")
      yield* wait(id(2), 1000)
      assert.strictEqual(yield* send("GET", reserved), null)
    }).pipe(Effect.provide(server)))

  it.effect.each(
    [
      [7, "notified when the reservation ends"],
      [8, "not notified"]
    ] as const
  )(
    "holding back for a Simba contender behind %s others is %s",
    ([ahead]) =>
      Effect.scoped(Effect.gen(function*() {
        const inbox = yield* (yield* Subscriber).subscribe("simba:inbox:aaaaaaaaaaaa")
        for (let n = 0; n < ahead; n++) yield* send("ZADD", queue, `1749999000.0${n}0001`, id(100 + n))
        yield* send("SET", reserved, simba, "PX", "1500")
        yield* TestClock.adjust("400 millis")
        yield* wait(id(2), 1000)
        yield* TestClock.adjust("1 millis")
        const messages = yield* Queue.clear(inbox)
        assert.deepStrictEqual(
          messages.map((message) => message._tag === "Message" ? message.text : message._tag),
          ahead < 8 ? ["2@@look@@1100"] : []
        )
      })).pipe(Effect.provide(server))
  )

  it.effect("gets the mutex thanks to its ticket after a Simba release has removed it from the queue", () =>
    Effect.gen(function*() {
      yield* tryIt(id(1))
      const [, ticket] = yield* wait(id(2), 1000)
      yield* send("DEL", owner)
      yield* send("ZREM", queue, id(2))
      yield* send("SET", reserved, id(2), "PX", "1500")
      assert.isString(yield* wait(id(2), 1000, (Number(ticket) / 1e6).toFixed(6)))
      assert.strictEqual(yield* send("GET", owner), id(2))
    }).pipe(Effect.provide(server)))
})

describe("a free mutex", () => {
  it.effect.each([[1, id(2)], [-1, id(3)]] as const)(
    "behind a dead waiter goes to the caller or to the first live waiter, whichever has the earlier ticket (%s s apart)",
    ([apart, expected]) =>
      Effect.scoped(Effect.gen(function*() {
        yield* (yield* Subscriber).subscribe("simba:inbox:aaaaaaaaaaaa")
        const ticket = 1_749_999_000.500001
        yield* send("ZADD", queue, "1749999000.000001", id(1, "dddddddddddd"), String(ticket + apart), id(3))
        yield* wait(id(2), 1000, ticket.toFixed(6))
        assert.strictEqual(yield* send("GET", owner), expected)
      })).pipe(Effect.provide(server))
  )
})

describe("a reservation", () => {
  it.effect("keeps other contenders off the mutex until its last millisecond", () =>
    Effect.scoped(Effect.gen(function*() {
      yield* (yield* Subscriber).subscribe("simba:inbox:aaaaaaaaaaaa")
      yield* tryIt(id(1))
      yield* wait(id(2), 1000)
      yield* send("SET", reserved, simba, "PX", "1")
      yield* send("DEL", owner)
      assert.strictEqual(yield* tryIt(id(3)), "@@,0,0,0")
      yield* operate("r", id(3))
      assert.strictEqual(yield* send("EXISTS", owner), 0)
    })).pipe(Effect.provide(server)))

  it.effect("is ignored if it has no expiry, because another program wrote it", () =>
    Effect.scoped(Effect.gen(function*() {
      yield* (yield* Subscriber).subscribe("simba:inbox:aaaaaaaaaaaa")
      yield* send("SET", reserved, simba)
      assert.match(yield* tryIt(id(1)), /^\d+$/)
      assert.strictEqual(yield* send("EXISTS", reserved), 0)
      yield* wait(id(2), 1000)
      yield* send("SET", reserved, simba)
      yield* send("DEL", owner)
      assert.strictEqual(yield* operate("r", id(3)), 1)
      assert.strictEqual(yield* send("GET", owner), id(2))
    })).pipe(Effect.provide(server)))
})

describe("an inspection", () => {
  it.effect("returns how long each waiter has been waiting, which is never negative", () =>
    Effect.gen(function*() {
      yield* tryIt(id(1))
      yield* wait(id(2), 3000)
      yield* send("ZADD", queue, "1750000100.5", id(3))
      const waited = Effect.map(operate("i", "5"), (reply) => (reply as ReadonlyArray<unknown>)[3])
      assert.deepStrictEqual<unknown>(yield* waited, [[id(2), "0"], [id(3), "0"]])
      yield* TestClock.adjust(7)
      assert.deepStrictEqual<unknown>(yield* waited, [[id(2), "7"], [id(3), "0"]])
    }).pipe(Effect.provide(server)))
})

describe("renewals", () => {
  it.effect("report a key of the wrong type and renew the other leases", () =>
    Effect.gen(function*() {
      yield* send("RPUSH", "k1", "x")
      yield* send("SET", "k2", id(2), "PX", "100")
      yield* send("RPUSH", "k3", "x")
      const { lua } = scripts.renewLeases.text
      const reply = (yield* send("EVAL", lua, "3", "k1", "k2", "k3", id(1), id(2), id(3), "5000")) as Array<
        Array<unknown>
      >
      assert.deepStrictEqual(reply.map(([index, what]) => [index, what]), [[1, "error"], [3, "error"]])
      assert.include(String(reply[0]![2]), "WRONGTYPE")
      assert.strictEqual(yield* send("PTTL", "k2"), 5000)
    }).pipe(Effect.provide(server)))
})

describe("a forced release", () => {
  it.effect("notifies a Simba owner on its own channel", () =>
    Effect.scoped(Effect.gen(function*() {
      const { subscribe } = yield* Subscriber
      const heard = yield* subscribe(`${owner}:${simba}`)
      yield* send("SET", owner, simba, "PX", "4000")
      const before = yield* force(simba)
      assert.strictEqual(before, `${simba}@@4000`)
      yield* TestClock.adjust(Duration.millis(1))
      const messages = yield* Queue.clear(heard)
      assert.include(JSON.stringify([...messages]), `released@@${simba}`)
    })).pipe(Effect.provide(server)))

  it.effect("notifies the next Simba waiter and names the previous owner, if any", () =>
    Effect.scoped(Effect.gen(function*() {
      const received = yield* (yield* Subscriber).subscribe(`${owner}:${simba}`)
      for (const [by, from] of [[id(1), id(1)], [undefined, "nobody"]] as const) {
        yield* send("DEL", ...keys)
        if (by !== undefined) yield* tryIt(by)
        yield* send("ZADD", queue, "1750000010", simba)
        yield* force(by ?? "")
        yield* TestClock.adjust(Duration.millis(1))
        assert.include(JSON.stringify([...(yield* Queue.clear(received))]), `"released@@${from}"`)
      }
    })).pipe(Effect.provide(server)))

  it.effect("raises the fence even if nobody is waiting", () =>
    Effect.gen(function*() {
      const token = Number(yield* tryIt(id(1)))
      yield* force(id(1))
      assert.strictEqual(yield* send("EXISTS", owner), 0)
      assert.isAbove(Number(yield* send("GET", fence)), token)
    }).pipe(Effect.provide(server)))

  it.effect.each([fence, queue])(
    "changes nothing if %s has the wrong type",
    (key) =>
      Effect.gen(function*() {
        yield* tryIt(id(1))
        yield* send("SET", reserved, simba, "PX", "1500")
        yield* send("DEL", key)
        yield* send("HSET", key, "of", "another program")
        const exit = yield* Effect.exit(force(id(1)))
        assert.include(String(exit), "WRONGTYPE")
        assert.deepStrictEqual(yield* send("MGET", owner, reserved), [id(1), simba])
      }).pipe(Effect.provide(server))
  )

  it.effect("changes nothing if the request names another owner", () =>
    Effect.gen(function*() {
      const token = yield* tryIt(id(2))
      for (const named of [id(1), ""]) {
        assert.strictEqual(yield* force(named), `${id(2)}@@9000`)
        assert.deepStrictEqual(yield* send("MGET", owner, fence), [id(2), token])
      }
      assert.strictEqual(yield* force(id(2)), `${id(2)}@@9000`)
      assert.strictEqual(yield* send("EXISTS", owner), 0)
    }).pipe(Effect.provide(server)))
})

describe("a confirmation", () => {
  it.effect("extends only the grant with its token", () =>
    Effect.gen(function*() {
      const token = yield* tryIt(id(1))
      const other = String(Number(token) - 1)
      assert.deepStrictEqual(yield* confirm(id(1), other, 4000), [`${id(1)}@@9000`, 0, 0, 0])
      assert.strictEqual(yield* send("PTTL", owner), 9000)
      assert.strictEqual(yield* confirm(id(1), token, 4000), token)
      assert.strictEqual(yield* send("PTTL", owner), 4000)
      assert.deepStrictEqual(yield* confirm(id(2), token, 9000), [`${id(1)}@@4000`, 0, 0, 0])
    }).pipe(Effect.provide(server)))
})

describe("tokens", () => {
  /** The fake server's time at its start. Its clock moves only with the test clock. */
  const began = 1_750_000_000_000_000

  const grants = (count: number) =>
    Effect.forEach(Array.from({ length: count }, (_, n) => id(n + 1)), (by) =>
      Effect.gen(function*() {
        const token = Number(yield* tryIt(by))
        assert.strictEqual(yield* send("GET", fence), String(token))
        yield* operate("r", by)
        return token
      }))

  it.effect("differ by a stride, or by one if they are granted at the same time", () =>
    Effect.gen(function*() {
      const [now] = (yield* send("TIME")) as [string]
      const at = Number(now) * 1_000_000
      assert.deepStrictEqual((yield* grants(4)).map((token) => token - at), [100, 201, 202, 203])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual((yield* grants(2)).map((token) => token - at), [1100, 1201])
    }).pipe(Effect.provide(server)))

  it.effect("exceed a fence that is ahead of the clock", () =>
    Effect.gen(function*() {
      const largest = 2 ** 53 - 102
      for (
        const [last, next] of [
          [8e15, 8e15 + 101],
          [8e15 + 5, 8e15 + 6],
          [8e15 + 99, 8e15 + 101],
          [largest, largest + 1]
        ] as const
      ) {
        yield* send("SET", fence, String(last))
        assert.deepStrictEqual(yield* grants(1), [next])
      }
    }).pipe(Effect.provide(server)))

  it.effect("come from the clock if the fence cannot be a token", () =>
    Effect.gen(function*() {
      for (const text of ["x", "nan", "inf", "-inf", "9007199254740891", "9007199254740991", "9".repeat(20)]) {
        yield* send("SET", fence, text)
        assert.deepStrictEqual(yield* grants(1), [began + 100], text)
      }
    }).pipe(Effect.provide(server)))
})

describe("a waiter's grant", () => {
  const waiter = id(2, "bbbbbbbbbbbb")

  /**
   * Returns the length of the grant that a release gives a waiter of about this age, in milliseconds, and the waiter's
   * exact age at the grant, in microseconds.
   */
  const grantOf = (age: number, skipDead = "1", by: ReadonlyArray<string> = ["r", id(1)]) =>
    Effect.scoped(Effect.gen(function*() {
      const { subscribe } = yield* Subscriber
      const inbox = yield* subscribe("simba:inbox:bbbbbbbbbbbb")
      yield* tryIt(id(1))
      const [seconds, micros] = (yield* send("TIME")) as [string, string]
      const at = Number(seconds) + Number(micros) / 1e6 - age / 1000
      yield* send("ZADD", queue, at.toFixed(6), waiter)
      yield* operateWith(skipDead, by[0]!, ...by.slice(1))
      assert.strictEqual(yield* send("GET", owner), waiter)
      const period = yield* send("PTTL", owner)
      yield* TestClock.adjust(1)
      const [message] = yield* Queue.clear(inbox)
      const [, , token, ahead, millis] = message?._tag === "Message" ? message.text.split("@@").map(Number) : []
      assert.strictEqual(millis, period, "the message contains the grant's period")
      return { period, micros: token! - ahead! - Math.round(at * 1e6) }
    })).pipe(Effect.provide(Layer.fresh(server)))

  const grantedAt = (...args: Parameters<typeof grantOf>) => Effect.map(grantOf(...args), ({ period }) => period)

  it.effect("depends on the waiter's age to the microsecond", () =>
    Effect.gen(function*() {
      const offsets = Array.from({ length: 30 }, (_, i) => i)
      const ages = offsets.flatMap((micros) => [1500 - micros / 1000, -micros / 1000])
      const grants = yield* Effect.forEach(ages, (age) => grantOf(age))
      const confirm = 1_500_000
      for (const { micros, period } of grants) {
        assert.strictEqual(period, micros >= 0 && micros <= confirm ? 9000 : 1500, `${micros}`)
      }
      assert.includeMembers(grants.map(({ micros }) => micros), [-1, 0, confirm, confirm + 1])
    }))

  it.effect("lasts a whole lease if the waiter queued within the last confirm period, otherwise a confirm period", () =>
    Effect.gen(function*() {
      const ages = [-1, 0, 1, 1400, 1499, 1501, 60_000]
      const periods = [1500, 9000, 9000, 9000, 9000, 1500, 1500]
      assert.deepStrictEqual(yield* Effect.forEach(ages, (age) => grantedAt(age)), periods)
      const any = ["d", id(1), "1500", "9000", "", "0"]
      assert.deepStrictEqual(yield* Effect.forEach(ages, (age) => grantedAt(age, "1", any)), periods)
    }))

  it.effect("lasts a whole lease only if the server can count the waiter's subscription", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* Effect.forEach(["1", "own", "0"], (skip) => grantedAt(1, skip)), [
        9000,
        9000,
        1500
      ])
    }))

  it.effect("lasts a confirm period after a forced release", () =>
    Effect.scoped(Effect.gen(function*() {
      yield* (yield* Subscriber).subscribe("simba:inbox:bbbbbbbbbbbb")
      yield* tryIt(id(1))
      yield* wait(waiter, 9000)
      yield* force(id(1))
      assert.deepStrictEqual([yield* send("GET", owner), yield* send("PTTL", owner)], [waiter, 1500])
    })).pipe(Effect.provide(server)))

  it.effect("is a reservation for a confirm period if the waiter is a Simba contender", () =>
    Effect.scoped(Effect.gen(function*() {
      yield* (yield* Subscriber).subscribe(`${owner}:${simba}`)
      yield* tryIt(id(1))
      const [seconds] = (yield* send("TIME")) as [string]
      yield* send("ZADD", queue, seconds, simba)
      yield* operate("r", id(1))
      assert.deepStrictEqual([yield* send("GET", owner), yield* send("PTTL", reserved)], [null, 1500])
    })).pipe(Effect.provide(server)))
})

describe("a release", () => {
  const layers = ["bbbbbbbbbbbb", "cccccccccccc"] as const

  /** Queues these waiters behind an owner. `received` returns the messages sent on each channel. */
  const stage = Effect.fnUntraced(function*(waiters: ReadonlyArray<string>, listening: ReadonlyArray<string>) {
    const { subscribe } = yield* Subscriber
    const heard = yield* Effect.forEach(listening, (channel) => subscribe(channel))
    yield* tryIt(id(1))
    yield* send("ZADD", queue, ...waiters.flatMap((waiter, i) => [`1749999000.0${String(i + 10)}01`, waiter]))
    const received = Effect.gen(function*() {
      yield* TestClock.adjust(Duration.millis(1))
      return yield* Effect.forEach(
        heard,
        (queue) => Effect.map(Queue.clear(queue), (all) => all.map((one) => JSON.stringify(one)))
      )
    })
    return { received }
  })

  const inboxes = layers.map((layer) => `simba:inbox:${layer}`)
  const crowd = (count: number, layer: string = layers[0]) => Array.from({ length: count }, (_, i) => id(i + 2, layer))
  const polls = (messages: ReadonlyArray<string>) => messages.filter((message) => message.includes("@@look@@"))
  const counted = (messages: ReadonlyArray<ReadonlyArray<string>>) => messages.map((all) => polls(all).length)

  it.effect("grants the mutex and makes the next eight waiters poll if dead waiters cannot be detected", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received } = yield* stage(crowd(12), inboxes)
      yield* operateWith("0", "r", id(1))
      assert.strictEqual(yield* send("GET", owner), id(2, layers[0]))
      assert.deepStrictEqual(counted(yield* received), [8, 0])
    })).pipe(Effect.provide(server)))

  it.effect("by the first waiter makes the next one poll, or the next eight if dead waiters cannot be detected", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received } = yield* stage(crowd(12), inboxes)
      yield* operateWith("0", "r", id(2, layers[0]))
      assert.deepStrictEqual(counted(yield* received), [8, 0])
      yield* operate("r", id(3, layers[0]))
      assert.deepStrictEqual(counted(yield* received), [1, 0])
    })).pipe(Effect.provide(server)))

  it.effect("makes the next waiter from another layer poll if there is one among the next eight", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received } = yield* stage([...crowd(4), id(30, layers[1]), id(31, layers[1])], inboxes)
      yield* operate("r", id(1))
      const [same, elsewhere] = (yield* received).map(polls)
      assert.deepStrictEqual([same!.length, elsewhere!.length], [0, 1])
      assert.include(elsewhere![0]!, "30@@look")
    })).pipe(Effect.provide(server)))

  it.effect("makes the next waiter poll if no other layer is among the next eight", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received } = yield* stage([...crowd(12), id(30, layers[1])], inboxes)
      yield* operate("r", id(1))
      const [same, elsewhere] = (yield* received).map(polls)
      assert.deepStrictEqual([same!.length, elsewhere!.length], [1, 0])
      assert.include(same![0]!, "3@@look")
    })).pipe(Effect.provide(server)))

  it.effect("removes a dead waiter behind the one that gets the mutex", () =>
    Effect.scoped(Effect.gen(function*() {
      yield* Effect.asVoid(stage([id(2, layers[0]), id(3, layers[1])], [inboxes[0]!]))
      yield* operate("r", id(1))
      assert.strictEqual(yield* send("GET", owner), id(2, layers[0]))
      assert.strictEqual(yield* send("EXISTS", queue), 0)
    })).pipe(Effect.provide(server)))

  it.effect.each(["1", "own"])(
    "skips a dead effect-simba waiter if it can be counted (%s)",
    (skipDead) =>
      Effect.scoped(Effect.gen(function*() {
        yield* Effect.asVoid(stage([id(2, layers[0]), id(3, layers[1])], [inboxes[1]!]))
        yield* operateWith(skipDead, "r", id(1))
        assert.strictEqual(yield* send("GET", owner), id(3, layers[1]))
      })).pipe(Effect.provide(server))
  )

  it.effect("grants the id that it queues its own lease if nobody is waiting", () =>
    Effect.gen(function*() {
      yield* tryIt(id(1))
      yield* operate("d", id(1), "1500", "9000", id(2), "5000")
      assert.deepStrictEqual([yield* send("GET", owner), yield* send("PTTL", owner)], [id(2), 5000])
    }).pipe(Effect.provide(server)))

  it.effect("does not skip a Simba waiter if only effect-simba waiters can be counted", () =>
    Effect.scoped(Effect.gen(function*() {
      yield* Effect.asVoid(stage([simba, id(2, layers[0])], inboxes))
      yield* operateWith("own", "r", id(1))
      assert.strictEqual(yield* send("GET", reserved), simba)
      assert.strictEqual(yield* send("PTTL", reserved), 1500)
      assert.strictEqual(yield* send("GET", owner), null)
    })).pipe(Effect.provide(server)))

  it.effect.each([[[`${owner}:${id(2, layers[0])}`], 1500], [[], 0]] as const)(
    "to a Simba waiter makes the waiter behind it, which listens to %j, poll after %s ms",
    ([listening, millis]) =>
      Effect.scoped(Effect.gen(function*() {
        const { received } = yield* stage([simba, id(2, layers[0])], [inboxes[0]!, `${owner}:${simba}`, ...listening])
        yield* operate("r", id(1))
        const [messages] = (yield* received).map(polls)
        assert.lengthOf(messages!, 1)
        assert.include(messages![0]!, `"2@@look@@${millis}"`)
      })).pipe(Effect.provide(server))
  )

  it.effect("grants the mutex to the effect-simba waiter behind a dead Simba waiter", () =>
    Effect.scoped(Effect.gen(function*() {
      yield* Effect.asVoid(stage([simba, id(2, layers[0])], inboxes))
      yield* operate("r", id(1))
      assert.strictEqual(yield* send("GET", owner), id(2, layers[0]))
      assert.strictEqual(yield* send("GET", reserved), null)
    })).pipe(Effect.provide(server)))

  it.effect("by a waiter that a Simba release removed hands the mutex to the next waiter unless the mutex is reserved", () =>
    Effect.scoped(Effect.gen(function*() {
      const next = id(3, layers[0])
      yield* Effect.asVoid(stage([next], inboxes))
      yield* send("SET", reserved, simba, "PX", "1500")
      yield* send("DEL", owner)
      yield* operate("r", id(2, layers[0]))
      assert.strictEqual(yield* send("GET", owner), null)
      yield* send("DEL", reserved)
      yield* operate("r", id(2, layers[0]))
      assert.strictEqual(yield* send("GET", owner), next)
    })).pipe(Effect.provide(server)))

  it.effect("that reserves the mutex for Simba makes eight waiters with their own channels poll after the confirm period", () =>
    Effect.scoped(Effect.gen(function*() {
      const own = crowd(12)
      const { received } = yield* stage([simba, ...own], [
        ...inboxes,
        `${owner}:${simba}`,
        ...own.slice(0, 10).map((waiter) => `${owner}:${waiter}`)
      ])
      yield* operate("r", id(1))
      const [messages] = yield* received
      const after = (millis: string) => messages!.filter((message) => message.includes(`@@look@@${millis}`)).length
      assert.deepStrictEqual([after("1500"), after("0")], [8, 2])
    })).pipe(Effect.provide(server)))
})

describe("a failed operation", () => {
  it.effect("reports an owner key of the wrong type", () =>
    Effect.gen(function*() {
      yield* send("RPUSH", owner, "x")
      for (const code of ["t", "w", "r", "i"]) {
        assert.include(String(yield* operate(code, id(1))), "error,WRONGTYPE", code)
      }
      assert.include(String(yield* operate("c", id(1), "1", "1000")), "error,WRONGTYPE")
      assert.include(String(yield* operate("q", id(1), id(2))), "error,WRONGTYPE")
    }).pipe(Effect.provide(server)))

  it.effect("still releases the mutex if the queue has the wrong type, even if it should requeue an id", () =>
    Effect.gen(function*() {
      for (const [code, ...more] of [["r"], ["q", id(2)]] as const) {
        yield* send("DEL", ...keys)
        yield* tryIt(id(1))
        yield* send("SET", queue, "text")
        assert.include(String(yield* operate(code, id(1), ...more)), "error,WRONGTYPE", code)
        assert.strictEqual(yield* send("GET", owner), null)
      }
    }).pipe(Effect.provide(server)))

  it.effect("reports why an id cannot be queued, even if the release itself needs no write", () =>
    Effect.gen(function*() {
      yield* tryIt(id(1))
      yield* wait(id(2), 60_000)
      yield* send("CONFIG", "SET", "min-replicas-to-write", "1")
      assert.include(String(yield* operate("q", id(3), id(4))), "error,NOREPLICAS")
    }).pipe(Effect.provide(server)))

  it.effect("has its own error, unless the server is a replica, which fails the whole call", () =>
    Effect.gen(function*() {
      yield* send("RPUSH", fence, "x")
      assert.deepStrictEqual(String(yield* operate("t", id(1))).slice(0, 15), "error,WRONGTYPE")
      yield* (yield* FakeRedis.FakeRedis).setErrorState("READONLY")
      assert.include(String((yield* Effect.flip(operate("t", id(1)))).cause), "READONLY")
    }).pipe(Effect.provide(server)))
})
