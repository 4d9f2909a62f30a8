/** Runs consumers as separate processes, and kills and suspends them. Kills their server too. */
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import { type EntryId, type StreamName } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, Epoch, type Ownership, ServiceName, StreamStore } from "@effect-simba/core/streams/StreamStore"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { Token } from "../../../src/internal/client/codecs.ts"
import { separated } from "../../../src/streams/internal/codecs.ts"
import * as StreamKeys from "../../../src/streams/internal/keys.ts"
import { appendOnly, commandsWritten } from "../../support/appendOnlyFile.ts"
import { freshName, RedisServer, until } from "../../support/harness.ts"
import { startNode } from "../../support/nodeProcess.ts"
import type { Server } from "../../support/redisServer.ts"
import { processedKey, type StreamWorkerConfig, type StreamWorkerReport } from "../../support/streamWorker.ts"

interface Worker {
  readonly name: string
  readonly reports: ReadonlyArray<StreamWorkerReport>
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  readonly said: (tag: StreamWorkerReport["_tag"]) => Effect.Effect<void>
  /** Shuts the worker down gracefully. */
  readonly end: Effect.Effect<void>
}

const startWorker = (config: StreamWorkerConfig): Effect.Effect<Worker, never, Scope.Scope> =>
  Effect.map(
    startNode<StreamWorkerReport>("./streamWorker.ts", "SIMBA_TEST_STREAM_WORKER", config),
    ({ child, output, reports }): Worker => {
      const name = config.options.processName ?? ""
      const said: Worker["said"] = (tag) =>
        Effect.suspend(() =>
          until(
            `${name} says ${tag}; it reported ${JSON.stringify(reports.slice(-5))} ${output()}`,
            Effect.sync(() => reports.some((report) => report._tag === tag))
          )
        )
      const signal: Worker["signal"] = (signal) => Effect.sync(() => void child.kill(signal))
      return {
        name,
        reports,
        signal,
        said,
        end: Effect.andThen(signal("SIGTERM"), said("Done"))
      }
    }
  )

const decodeLease = Schema.decodeUnknownEffect(separated({ consumer: ConsumerName, epoch: Epoch, token: Token }))

/** Opens a service with data streams, a producer, and workers. */
const setting = Effect.fnUntraced(function*(
  server: Server,
  label: string,
  size: { readonly streams: number; readonly messages: number },
  defaults: Omit<StreamWorkerConfig["options"], "service"> = {}
) {
  const name = freshName(label)
  const service = ServiceName.make(name)
  const redis = IoRedis.layer({ url: server.url, commandTimeout: "2 seconds" })
  const context = yield* Layer.build(
    StreamClient.layer({ service: name, processName: "producer" }).pipe(
      Layer.provideMerge(RedisStreams.layerStore),
      Layer.provide(redis)
    )
  )
  const producer = Context.get(context, StreamClient.StreamClient)
  const store = yield* Context.get(context, StreamStore).open(service)
  const announced = yield* producer.announceAll(
    Array.from({ length: size.streams }, (_, index) => ({ stream: `${name} data@@${index}`, info: { index } }))
  )
  const streams = announced.map(({ stream }) => stream)
  const latest = new Map<StreamName, EntryId>()
  let written = 0
  const append = (isLast = false) =>
    Effect.gen(function*() {
      for (let n = 0; n < size.messages; n++) {
        written += 1
        const ends = isLast && n === size.messages - 1 ? ["last", "yes"] : []
        for (const stream of streams) {
          latest.set(stream, (yield* server.send("XADD", stream, "*", "n", String(written), ...ends)) as EntryId)
        }
      }
    })
  const checkpoints = Effect.forEach(streams, (stream) => server.send("GET", StreamKeys.checkpoint(stream)))
  /** Waits until a consumer owns the data stream, and returns its lease. */
  const leaseOf = (stream: StreamName) =>
    Effect.gen(function*() {
      for (;;) {
        const value = yield* server.send("GET", StreamKeys.streamLease(stream))
        if (value !== null) return yield* decodeLease(value)
        yield* Effect.sleep("10 millis")
      }
    })
  return {
    service,
    announced,
    streams,
    store,
    append,
    leaseOf,
    /** Waits until all messages are processed and committed. */
    settled: (what: string) =>
      until(
        `all messages are committed after ${what}`,
        Effect.map(
          checkpoints,
          (found) => streams.every((stream, index) => String(found[index]).split("@@")[0] === latest.get(stream))
        )
      ),
    /**
     * Starts a worker and waits until it is connected. Before that, it can neither survive an outage nor handle signals.
     */
    worker: (processName: string, options: Omit<StreamWorkerConfig["options"], "service"> = {}) =>
      Effect.tap(
        startWorker({
          url: server.url,
          workMillis: 5,
          options: { ...defaults, ...options, service: name, processName }
        }),
        ({ said }) => said("Ready")
      ),
    /** Returns the worker that owns the most data streams, and one of those. */
    busiest: (workers: ReadonlyArray<Worker>) =>
      Effect.gen(function*() {
        for (;;) {
          const leases = yield* Effect.forEach(streams, (stream) =>
            Effect.map(leaseOf(stream), (lease) => ({ ...lease, stream })))
          const owned = (worker: Worker) =>
            leases.filter((lease) => lease.consumer === `simba-consumer-${worker.name}`)
          const [first] = workers.map((worker) => ({ worker, leases: owned(worker) }))
            .sort((a, b) => b.leases.length - a.leases.length)
          const lease = first?.leases[0]
          if (first !== undefined && lease !== undefined) return { worker: first.worker, lease }
          yield* Effect.sleep("50 millis")
        }
      }).pipe(Effect.timeout("1 minute"))
  }
})

const indexOf = <A>(items: ReadonlyArray<A>, item: A) => {
  const index = items.indexOf(item)
  assert.isAtLeast(index, 0, `${String(item)} is known`)
  return index
}

/**
 * Checks the server's log for every data stream: tokens grow with every claim, the checkpoint moves by one message at a
 * time, and each owner processes a message under its own token before it commits the message.
 */
const audit = (commands: ReadonlyArray<ReadonlyArray<string>>, streams: ReadonlyArray<StreamName>) =>
  streams.map((stream) => {
    const messages: Array<string> = []
    const processed = new Set<string>()
    let owners = 0
    let token = 0
    let committed = 0
    let writer = 0
    let writes = 0
    for (const [name, key, value, ...rest] of commands) {
      if (name?.toUpperCase() === "XADD" && key === stream) messages.push(value!)
      else if (name?.toUpperCase() === "SET" && key === StreamKeys.streamLease(stream)) {
        const next = Number(value!.slice(value!.lastIndexOf("@@") + 2))
        assert.isAbove(next, token, `tokens of ${stream} grow`)
        token = next
        owners += 1
      } else if (name?.toUpperCase() === "RPUSH" && key === processedKey(stream)) {
        const [by, message] = value!.split(" ") as [string, string]
        assert.isAtLeast(Number(by), writer, `the resource of ${stream} refused old tokens`)
        writer = Number(by)
        writes += 1
        assert.isAtMost(indexOf(messages, message), committed, `no message in ${stream} is skipped: ${rest.join(" ")}`)
        processed.add(value!.split(" ", 2).join(" "))
      } else if (name?.toUpperCase() === "SET" && key === StreamKeys.checkpoint(stream)) {
        const id = value!.split("@@")[0]!
        assert.strictEqual(indexOf(messages, id), committed, `the checkpoint of ${stream} moves by one message`)
        assert.isTrue(processed.has(`${token} ${id}`), `${stream}: its owner ${token} processed ${id} before`)
        committed += 1
      }
    }
    return { stream, messages: messages.length, committed, owners, writes }
  })

/** Asserts that the service has left no keys except those that are kept on purpose. */
const assertFinished = Effect.fnUntraced(function*(
  server: Server,
  { announced, service, streams }: Effect.Success<ReturnType<typeof setting>>
) {
  const input = StreamKeys.input(service)
  yield* until("all data streams are done", Effect.map(server.send("XLEN", input), (length) => length === 0))
  const [pending] = (yield* server.send("XPENDING", input, StreamKeys.group(service))) as [number]
  assert.strictEqual(pending, 0)
  for (const { entry, stream } of announced) {
    assert.strictEqual(
      yield* server.send("EXISTS", StreamKeys.entryLease(stream, entry), StreamKeys.streamLease(stream)),
      0
    )
  }
  const dead = [StreamKeys.deadLetters(service), ...streams.map(StreamKeys.deadMessages)]
  assert.strictEqual(yield* server.send("EXISTS", ...dead), 0, "there are no dead letters")
})

const brisk = {
  leaseDuration: "1500 millis",
  heartbeatInterval: "200 millis",
  commandTimeout: "500 millis",
  sweepInterval: "500 millis",
  gracePeriod: "500 millis",
  capacity: 12
} as const

/**
 * Kills an owner. Its successor must find the data streams in the tested way, because the other ways are disabled or
 * too slow.
 */
const followed = (by: "event" | "sweep") =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start()
    const sweep = by === "event" ? "10 minutes" : "500 millis"
    const fleet = yield* setting(server, by, { streams: 3, messages: 3 }, {
      ...brisk,
      sweepInterval: sweep,
      enableEvents: by === "event",
      rebalance: false
    })
    const owner = yield* fleet.worker("owner")
    yield* fleet.append()
    yield* fleet.settled("the start")
    const successor = yield* fleet.worker("successor")
    const channels = [StreamKeys.signalChannel(fleet.service), StreamKeys.expiredChannel(0)]
    yield* until(
      "both consumers are members and listen for events",
      Effect.map(
        server.send("PUBSUB", "NUMSUB", ...channels),
        (counts) => {
          const [, hints, , expiries] = counts as ReadonlyArray<unknown>
          return hints === 2 && expiries === (by === "event" ? 2 : 0)
        }
      )
    )
    const before = yield* fleet.leaseOf(fleet.streams[0]!)
    assert.strictEqual(before.consumer, "simba-consumer-owner")
    if (by === "sweep") {
      assert.deepStrictEqual(
        yield* server.send("CONFIG", "GET", "notify-keyspace-events"),
        ["notify-keyspace-events", ""]
      )
    }
    yield* fleet.append()
    yield* owner.signal("SIGKILL")
    // The killed owner may have committed all earlier messages already
    yield* fleet.append()
    yield* fleet.settled("a kill")
    const after = yield* fleet.leaseOf(fleet.streams[0]!)
    assert.strictEqual(after.consumer, "simba-consumer-successor")
    assert.isAbove(after.token, before.token)
    yield* fleet.append(true)
    yield* assertFinished(server, fleet)
    yield* successor.end
  }).pipe(Effect.scoped)

describe("processes sharing data streams on one Redis", () => {
  it.live(
    "no message is lost and no checkpoint moves back when owners are killed or suspended and the server restarts",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer.start({ args: appendOnly })
        const fleet = yield* setting(server, "chaos", { streams: 8, messages: 6 }, brisk)
        const { append, busiest, leaseOf, settled, store, streams, worker } = fleet
        const everybody: Array<Worker> = []
        const start = (name: string) =>
          Effect.tap(worker(name), (started) => Effect.sync(() => everybody.push(started)))
        let alive: ReadonlyArray<Worker> = yield* Effect.forEach(["a", "b", "c"], start, { concurrency: "unbounded" })
        const without = (gone: Worker) => alive.filter((worker) => worker !== gone)
        yield* append()
        yield* settled("the start")

        // Kill an owner that is working, and restart it under the same name
        const first = yield* busiest(alive)
        yield* append()
        yield* first.worker.signal("SIGKILL")
        alive = [...without(first.worker), yield* start(first.worker.name)]
        yield* settled("a kill")

        // Suspend an owner until another one has taken over, then resume it
        const second = yield* busiest(alive)
        yield* second.worker.signal("SIGSTOP")
        yield* append()
        yield* settled("a suspension")
        const { lease } = second
        const next = yield* leaseOf(lease.stream)
        assert.isAbove(next.token, lease.token)
        yield* second.worker.signal("SIGCONT")
        yield* append()
        // Send the stale owner's commands directly, so that only the server can reject them
        const entry = fleet.announced.find(({ stream }) => stream === lease.stream)!.entry
        const stale: Ownership = { ...lease, entry }
        const [message] = yield* store.messages(lease.stream, "0-0" as EntryId, 1)
        assert.strictEqual(yield* store.commit(stale, "99999999999999-0" as EntryId), "NotOwner")
        assert.strictEqual(yield* store.deadLetterMessage(stale, message!, "late"), "NotOwner")
        assert.strictEqual(yield* store.done(stale), "NotOwner")
        assert.strictEqual(yield* store.release(stale), "NotOwner")
        yield* settled("its return")

        // Kill the server and restart it with its data
        yield* append()
        yield* server.restart
        yield* append()
        yield* settled("a server restart")

        // Combine the faults: while the server is down, kill one owner and suspend another
        const third = yield* busiest(alive)
        const sleeper = without(third.worker)[0]!
        yield* append()
        yield* server.kill()
        yield* third.worker.signal("SIGKILL")
        yield* sleeper.signal("SIGSTOP")
        yield* server.restart
        alive = [...without(third.worker), yield* start("d")]
        yield* append()
        yield* settled("an outage with a kill and a suspension")
        yield* sleeper.signal("SIGCONT")

        // One consumer shuts down gracefully, and the others continue
        const fourth = yield* busiest(alive)
        yield* append()
        yield* fourth.worker.end
        alive = without(fourth.worker)
        yield* append(true)
        yield* settled("a clean end")
        yield* assertFinished(server, fleet)
        for (const worker of alive) yield* worker.end
        assert.strictEqual(yield* server.send("EXISTS", StreamKeys.members(fleet.service)), 0, "no members are left")

        const found = audit(yield* commandsWritten(server), streams)
        for (const { committed, messages, stream, writes } of found) {
          assert.strictEqual(committed, messages, `${stream} was committed to the end`)
          assert.isAtLeast(writes, messages, `${stream} was processed to the end`)
        }
        assert.isAbove(
          found.reduce((sum, { owners }) => sum + owners, 0),
          streams.length,
          "data streams changed owners"
        )
        for (const { name, reports } of everybody) {
          assert.deepStrictEqual(reports.filter(({ _tag }) => _tag === "Failed"), [], `${name} did not exit`)
        }
      }).pipe(Effect.scoped),
    { tags: ["G18", "G32"] }
  )

  it.live(
    "without sweeps, events reveal a killed owner's data streams",
    () => followed("event")
  )

  it.live("without events, a sweep finds a killed owner's data streams", () => followed("sweep"), {
    tags: ["B54", "G15"]
  })
})
