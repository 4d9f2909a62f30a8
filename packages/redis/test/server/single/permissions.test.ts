/** The documented permissions suffice for every operation. */
import { Leadership, Mutex } from "@effect-simba/core"
import { FencingToken } from "@effect-simba/core/FencingToken"
import { MutexStore } from "@effect-simba/core/MutexStore"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, Epoch, type Ownership, ServiceName, StreamStore } from "@effect-simba/core/streams/StreamStore"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { assert, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Layer, Option, Stream } from "effect"
import { capturingLogs, RedisServer, until } from "../../support/harness.ts"
import { rulesOf } from "../../support/permissions.ts"

const userOf = (rules: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start()
    yield* server.send("ACL", "SETUSER", "locks", "reset", ...rules)
    return { server, redis: IoRedis.layer({ url: `redis://locks:secret@127.0.0.1:${server.port}` }) }
  })

it.live("of mutexes, contenders, observers and operators", () =>
  Effect.gen(function*() {
    const { redis } = yield* userOf(rulesOf(1))
    const live = () => Layer.fresh(Mutex.layer().pipe(Layer.provideMerge(RedisMutex.layerStore), Layer.provide(redis)))
    const work = Effect.gen(function*() {
      const other = yield* Layer.build(live())
      const events = yield* Effect.forkScoped(Mutex.events("m").pipe(Stream.take(2), Stream.runDrain))
      // Two layers alternately hand the mutex to each other
      const turn = Mutex.withLock("m", { timeout: "10 seconds" })(Effect.sleep("5 millis"))
      const turns = Effect.repeat(turn, { times: 5 })
      yield* Effect.all([turns, Effect.provideContext(turns, other)], { concurrency: "unbounded" })
      yield* Fiber.join(events)
      const jobs = yield* Mutex.contend("jobs")
      yield* until("it leads", Effect.map(jobs.lease, Option.isSome))
      const ran = yield* Deferred.make<void>()
      const job = { name: "job", schedule: Leadership.every("1 second"), run: Deferred.succeed(ran, undefined) }
      yield* Effect.forkScoped(Leadership.runJobs(jobs, [job]))
      yield* Deferred.await(ran)
      const store = yield* MutexStore
      const noted = Effect.map(
        store.jobs.read({ mutex: jobs.mutex, jobs: [] }),
        ({ jobs }) => jobs.get("job")!.success !== undefined
      )
      yield* until("the job's success is recorded", noted)
      assert.isTrue(yield* store.jobs.steer(jobs.mutex, { _tag: "Pause" }))
      assert.deepStrictEqual(yield* Stream.runCollect(Mutex.list), ["jobs"])
      assert.strictEqual((yield* Mutex.inspect("jobs")).ownership._tag, "Held")
      yield* Mutex.forceRelease("jobs")
    })
    yield* Effect.scoped(work).pipe(Effect.provide(Layer.merge(live(), capturingLogs([]))))
  }))

it.live("of data streams", () =>
  Effect.gen(function*() {
    const { redis, server } = yield* userOf([...rulesOf(1), ...rulesOf(2)])
    const work = Effect.gen(function*() {
      const { open } = yield* StreamStore
      const service = yield* open(ServiceName.make("orders"))
      const [a, b] = [ConsumerName.make("simba-consumer-a"), ConsumerName.make("simba-consumer-b")]
      const session = "s00000000001"
      const [lease, moment] = [Duration.seconds(10), Duration.millis(5)]
      let count = 0
      const own = Effect.fnUntraced(function*(label: string, entry?: EntryId) {
        const stream = StreamName.make(`orders:${label}`)
        if (entry === undefined) yield* service.announce([{ stream, info: {} }])
        const read = entry === undefined ? yield* service.read({ consumer: a, count: 1, block: moment }) : []
        const epoch = Epoch.make(`s00000000000.${(++count).toString(36)}`)
        const request = { stream, entry: entry ?? read[0]!.entry, consumer: a, epoch }
        const [result] = yield* service.take([{ ...request, lease, minIdle: Duration.zero, maxFailures: 3 }])
        assert.strictEqual(result!._tag, "Taken")
        return {
          ...request,
          token: result!._tag === "Taken" ? result!.token : FencingToken.make(1)
        } satisfies Ownership
      })
      yield* service.prepare
      yield* service.signals
      yield* service.expiries
      const held = yield* own("one")
      const id = EntryId.make("1-1")
      const message = yield* Effect.forkChild(service.awaitMessages(held.stream, EntryId.make("0-0"), 1))
      yield* server.send("XADD", held.stream, id, "n", "1")
      assert.lengthOf(yield* Fiber.join(message), 1)
      assert.deepStrictEqual(yield* service.renew([held], lease), [{ _tag: "Renewed" }])
      assert.strictEqual(yield* service.commit(held, id), "Committed")
      const next = { id: EntryId.make("2-0"), fields: [["n", "2"]] as const }
      assert.strictEqual(yield* service.deadLetterMessage(held, next, "unreadable"), "DeadLettered")
      assert.strictEqual(yield* service.end(held), "Open")
      yield* service.checkpoint(held.stream)
      yield* service.keepCheckpoints([held.stream])
      assert.isObject(yield* service.fail(held, { attempt: 1 }))
      yield* service.heartbeat({ consumer: a, session, capacity: 1, owned: 1 }, lease)
      assert.isTrue(Option.isSome(yield* service.find(held.stream)))
      assert.strictEqual(yield* service.release(held), "Released")
      const repeated = yield* own("one", held.entry)
      assert.strictEqual(yield* service.handOver(repeated, { consumer: b, session }, lease), "HandedOver")
      const [{ info: _, ...passed }] = (yield* service.handedOver(b, session)) as unknown as [
        Ownership & { readonly info: unknown }
      ]
      assert.strictEqual(yield* service.done(passed), "Done")
      assert.strictEqual(yield* service.deadLetter(yield* own("two"), "poison"), "DeadLettered")
      const [letter] = yield* service.deadLetters(undefined, 10)
      assert.isTrue(yield* service.redrive(letter!.id))
      assert.strictEqual((yield* service.pending({ minIdle: Duration.zero, count: 10 })).entries.length, 0)
      yield* service.reap(Duration.zero)
      assert.strictEqual((yield* service.inspect).announced, 1)
      yield* service.leave({ consumer: a, session })
    })
    yield* Effect.scoped(work).pipe(Effect.provide(RedisStreams.layerStore.pipe(Layer.provide(redis))))
  }))
