/** Runs the data-stream scenarios on a Cluster, and tests hash tags, hanging nodes and slot migration. */
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import * as StreamMessages from "@effect-simba/core/streams/StreamMessages"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, type Duration, Effect, Layer, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as StreamKeys from "../../../src/streams/internal/keys.ts"
import { capturingLogs, until } from "../../support/harness.ts"
import { type ClusterSetup, RedisServer } from "../../support/redisServer.ts"
import { keysInSlot, moveSlot, ownerOfSlot } from "../../support/resharding.ts"
import { produce } from "../../support/streams.ts"
import * as scenarios from "../../support/streamScenarios.ts"
import { stageOver } from "../../support/streamStage.ts"

const at = ({ port }: { readonly port: number }) => ({ host: "127.0.0.1", port })

const clusterLayer = ({ nodes }: ClusterSetup, commandTimeout: Duration.Input = "500 millis") =>
  IoRedis.layerCluster({ nodes: nodes.slice(0, 1).map(at), commandTimeout })

/** Sends a command to the node that stores its key, or to all nodes if the command has no key. */
const clusterStage = Effect.fnUntraced(function*(setup: ClusterSetup) {
  const redis = Context.get(yield* Layer.build(Layer.fresh(clusterLayer(setup, "5 seconds"))), Redis)
  const onAll = <A, E>(act: (node: ClusterSetup["nodes"][number]) => Effect.Effect<A, E>) =>
    Effect.forEach(setup.nodes, act)
  return stageOver(clusterLayer(setup), {
    isTagged: true,
    send: (command, ...args) =>
      command === "KEYS"
        ? Effect.map(onAll((node) => node.send(command, ...args)), (replies) => replies.flat())
        : redis.send(command!, ...args),
    pause: Effect.asVoid(onAll((node) => node.pause)),
    resume: Effect.asVoid(onAll((node) => node.resume))
  })
})

class Nodes extends Context.Service<Nodes, ClusterSetup>()("test/Nodes") {
  static readonly layer = Layer.effect(Nodes, RedisServer.cluster())
}

type Scenario = (stage: scenarios.Stage) => Effect.Effect<void, unknown>

const shared = (scenario: Scenario) => Effect.scoped(Effect.flatMap(Effect.flatMap(Nodes, clusterStage), scenario))

layer(Nodes.layer, { excludeTestServices: true, timeout: "60 seconds" })(
  "data streams on a Cluster",
  (it) => {
    it.effect("every announced data stream is processed once and leaves nothing behind", () =>
      shared(scenarios.finished))

    it.effect("without events, a dead owner's data streams are taken over with larger tokens", () =>
      shared(scenarios.orphans))

    it.effect("a signal sent through any node makes another consumer take yielded data streams immediately", () =>
      shared(scenarios.handedBack))

    it.effect("a deleted group is recreated without ending any ownership", () => shared(scenarios.groupGone))

    it.effect("malformed entries are dead-lettered, and the reader continues", () => shared(scenarios.malformed))

    it.effect("a data stream that keeps failing is dead-lettered and can be redriven", () => shared(scenarios.poison))

    it.effect("a new consumer gets its share through hand-overs", () => shared(scenarios.balanced))

    it.effect("reports trimmed messages as missed, and reads a rewritten data stream from its beginning", () =>
      shared(scenarios.gaps))

    it.effect("the next owner resumes after the last commit, and a stale owner cannot commit", () =>
      shared(scenarios.checkpoints))

    it.effect("messages are processed in order and without gaps even when owners crash or shut down", () =>
      shared(scenarios.processed))

    it.effect("services on all nodes share one set of connections", () =>
      Effect.gen(function*() {
        const redis = yield* Layer.build(RedisStreams.layerStore.pipe(Layer.provideMerge(clusterLayer(yield* Nodes))))
        const { send } = Context.get(redis, Redis)
        // Hash tags whose slots belong to three different nodes
        const services = ["{a}", "{b}", "{c}"].map((tag) => `${tag}:side-by-side`)
        const nodes = yield* Effect.forEach(services, (service) => send<number>("CLUSTER", "KEYSLOT", service))
        assert.strictEqual(new Set(nodes.map((slot) => Math.floor(slot * 3 / 16_384))).size, 3)
        yield* Effect.forEach(services, (service) =>
          Effect.gen(function*() {
            const { announceAll, run } = Context.get(
              yield* Layer.build(Layer.fresh(StreamClient.layer({ service, processName: "a" }))),
              StreamClient.StreamClient
            )
            const stream = `${service}:s`
            const observed: Array<number> = []
            yield* announceAll([{ stream }])
            yield* Effect.forkChild(run(StreamMessages.process(
              Schema.Struct({ n: Schema.FiniteFromString }),
              ({ value }) => Effect.sync(() => observed.push(value.n)),
              { until: ({ value }) => value.n === 10 }
            )))
            for (let n = 1; n <= 10; n++) yield* send("XADD", stream, "*", "n", String(n))
            yield* until(`${service} done`, Effect.map(send("XLEN", `${service}-input`), (left) => left === 0))
            assert.deepStrictEqual(observed, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
          }), { concurrency: "unbounded", discard: true }).pipe(Effect.provideContext(redis))
      }))

    it.effect("building the layer fails if the service has no hash tag", () =>
      Effect.gen(function*() {
        const nodes = yield* Nodes
        for (const service of ["plain", "{}plain", "}plain{", "{plain"]) {
          const error = yield* Effect.flip(Layer.build(
            RedisStreams.layerRedis({ service }).pipe(
              Layer.provide(clusterLayer(nodes))
            )
          ))
          assert.deepInclude(error, { _tag: "InvalidConfig", option: "service" })
          assert.include(error.message, "hash tag")
        }
      }), { tags: ["G24"] })

    it.effect(
      "announcing a data stream in another slot announces nothing and fails with an error that names it",
      () =>
        Effect.gen(function*() {
          const stage = yield* clusterStage(yield* Nodes)
          const { client } = yield* stage.open({ service: "{refused}", processName: "a" })
          for (const stream of ["elsewhere", "{elsewhere}:s", "refused:s", "{refused:s"]) {
            const error = yield* Effect.flip(client.announceAll([{ stream: "{refused}:s" }, { stream }]))
            assert.deepInclude(error, { _tag: "BackendError", operation: "announce", isRetryable: false })
            for (const part of [`"${stream}"`, `"{refused}"`, "hash tag"]) assert.include(error.message, part)
            const claiming = yield* Effect.flip(Effect.scoped(client.acquireIfAvailable(stream)))
            assert.deepInclude(claiming, { _tag: "BackendError", isRetryable: false })
            assert.include(claiming.message, "hash tag")
          }
          assert.strictEqual(Number(yield* stage.send("EXISTS", "{refused}-input")), 0)
        }),
      { tags: ["G24"] }
    )

    it.effect("another program's announcement of a data stream in another slot is dead-lettered", () =>
      Effect.gen(function*() {
        const stage = yield* clusterStage(yield* Nodes)
        const a = yield* stage.open({ service: "{foreign}", processName: "a" })
        const announced = JSON.stringify({ DataStreamName: "{elsewhere}:s", Info: {} })
        yield* stage.send("XADD", "{foreign}-input", "*", "lbs-input", announced)
        yield* a.client.announceAll([{ stream: "{foreign}:s" }])
        yield* a.start(a.client.run(Effect.never))
        yield* until("owned", Effect.map(a.client.owned, ({ length }) => length === 1))
        yield* until("dead-lettered", Effect.map(a.client.deadLetters(), ({ length }) => length === 1))
        const [letter] = yield* a.client.deadLetters()
        assert.include(letter!.reason, "{elsewhere}:s")
        assert.deepStrictEqual(letter!.fields, [["lbs-input", announced]])
      }).pipe(Effect.provide(capturingLogs([]))))
  }
)

describe("data streams on a failing Cluster", () => {
  it.live(
    "if all nodes hang, all leases expire and are reacquired later",
    () => Effect.scoped(Effect.flatMap(Effect.flatMap(RedisServer.cluster(), clusterStage), scenarios.hanging))
  )

  it.live(
    "an owner keeps its data streams and processes each message once while their slot moves to another node and back",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const setup = yield* RedisServer.cluster()
        const stage = yield* clusterStage(setup)
        const service = "{moved}"
        const streams = Array.from({ length: 3 }, (_, i) => StreamName.make(`${service}:s${i}`))
        const slot = Number(yield* setup.nodes[0]!.send("CLUSTER", "KEYSLOT", service))
        const [a, b] = yield* Effect.forEach(
          ["a", "b"],
          // Leases cannot be renewed during a migration, so a lease must outlast a migration on a busy machine
          (processName) => stage.open({ service, processName, rebalance: false, leaseDuration: "5 seconds" })
        )
        const runs: Array<Run> = []
        yield* a!.client.announceAll(streams.map((stream) => ({ stream })))
        yield* a!.start(a!.client.run((lease) => {
          const run: Run = { stream: lease.stream, token: lease.token, ids: [] }
          runs.push(run)
          return StreamMessages.process(
            Schema.Struct({ n: Schema.FiniteFromString }),
            ({ id }) => Effect.sync(() => run.ids.push(id))
          )
        }))
        yield* until(
          "all data streams are owned",
          Effect.map(a!.client.owned, ({ length }) => length === streams.length)
        )
        const leases = yield* a!.client.owned
        // The second consumer has free capacity, so it would claim any data stream that the first consumer lost
        yield* b!.start(b!.client.run(Effect.never))

        const producing = yield* produce(stage.send, streams)
        const read = Effect.suspend(() => {
          const target = producing.sent() + 10
          return until(
            "new messages are being read",
            Effect.sync(() => {
              assert.strictEqual(runs.length, streams.length, "no lease is lost, and no handler restarts")
              return runs.every(({ ids }) => ids.length >= target)
            })
          )
        })
        yield* read
        const first = yield* ownerOfSlot(setup, slot)
        const others = setup.nodes.filter((node) => node !== first)
        for (const to of [others[0]!, first]) {
          yield* moveSlot(setup, slot, to, Effect.sleep("400 millis"))
          assert.strictEqual(yield* ownerOfSlot(setup, slot), to)
          yield* read
          for (const lease of leases) yield* lease.ensure
          // Longer than a lease, so the leases survive only if they are renewed on the new node
          yield* Effect.sleep("5500 millis")
        }
        yield* producing.stop

        for (const [i, stream] of streams.entries()) {
          const rows = (yield* stage.send("XRANGE", stream, "-", "+")) as ReadonlyArray<readonly [string, unknown]>
          const ids = rows.map(([id]) => EntryId.make(id))
          yield* until(
            `all messages of ${stream} are committed`,
            Effect.map(
              stage.send("GET", StreamKeys.checkpoint(stream)),
              (text) => String(text).split("@@")[0] === ids.at(-1)
            )
          )
          const [run, ...more] = runs.filter((run) => run.stream === stream)
          assert.deepStrictEqual(more, [], "no lease is lost, and no handler restarts")
          assert.deepStrictEqual(run!.ids, ids)
          yield* leases[i]!.ensure
        }
        assert.deepStrictEqual(yield* b!.client.owned, [])
        for (const node of others) assert.deepStrictEqual(yield* keysInSlot(node, slot), [])
      })).pipe(Effect.provide(capturingLogs([])))
  )
})

interface Run {
  readonly stream: string
  readonly token: number
  readonly ids: Array<EntryId>
}
