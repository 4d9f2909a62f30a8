/** Data-stream consumers during a Sentinel failover. */
import * as StreamMessages from "@effect-simba/core/streams/StreamMessages"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { compareEntryIds } from "@effect-simba/core/streams/StreamStore"
import { IoRedis } from "@effect-simba/redis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as StreamKeys from "../../../src/streams/internal/keys.ts"
import { capturingLogs, client, until } from "../../support/harness.ts"
import { RedisServer, type SentinelSetup } from "../../support/redisServer.ts"
import { produce } from "../../support/streams.ts"
import { stageOver } from "../../support/streamStage.ts"

const at = ({ port }: { readonly port: number }) => ({ host: "127.0.0.1", port })

const sentinelLayer = ({ name, sentinels }: SentinelSetup) =>
  IoRedis.layer({ client: { name, sentinels: sentinels.map(at) }, commandTimeout: "500 millis" })

interface Run {
  readonly stream: string
  readonly token: number
  readonly ids: Array<EntryId>
}

/** Two consumers process messages that arrive before, during and after a failover. `begin` starts the failover. */
const failover = (begin: (setup: SentinelSetup) => Effect.Effect<unknown, unknown>) =>
  Effect.scoped(Effect.gen(function*() {
    const setup = yield* RedisServer.sentinel()
    const { replica } = setup
    const stage = stageOver(sentinelLayer(setup), {
      send: replica.send,
      pause: Effect.void,
      resume: Effect.void
    })
    const producer = Context.get(yield* Layer.build(Layer.fresh(sentinelLayer(setup))), Redis)
    const service = "failed-over"
    const streams = Array.from({ length: 4 }, (_, i) => StreamName.make(`${service}:s${i}`))
    const checkpoints = streams.map(StreamKeys.checkpoint)
    const runs: Array<Run> = []
    const processes = yield* Effect.forEach(
      ["a", "b"],
      (processName) => stage.open({ service, processName, capacity: 4 })
    )
    yield* processes[0]!.client.announceAll(streams.map((stream) => ({ stream })))
    for (const { client, start } of processes) {
      yield* start(client.run((lease) => {
        const run: Run = { stream: lease.stream, token: lease.token, ids: [] }
        runs.push(run)
        return StreamMessages.process(
          Schema.Struct({ n: Schema.FiniteFromString }),
          ({ id }) => Effect.sync(() => run.ids.push(id))
        )
      }))
    }

    // Only the surviving server's state counts, because the old primary may have been ahead of its replica.
    const survivor = yield* client(replica)
    const committed = Effect.map(
      Effect.promise(() => survivor.mget(checkpoints)),
      (texts) => texts.map((text) => text?.split("@@")[0] ?? null)
    )
    const samples: Array<ReadonlyArray<string | null>> = []
    yield* Effect.forkChild(Effect.forever(Effect.andThen(
      Effect.map(committed, (ids) => samples.push(ids)),
      Effect.sleep("10 millis")
    )))
    const producing = yield* produce(producer.send, streams)
    yield* until("thirty messages are sent", Effect.sync(() => producing.sent() >= 30))
    yield* until(
      "the replica has a checkpoint for every data stream",
      Effect.map(committed, (ids) => !ids.includes(null))
    )
    yield* begin(setup)
    yield* until("the replica is the primary", Effect.map(setup.primaryPort, (port) => port === replica.port))
    // Until it is demoted, the old primary accepts messages that are then lost. Count only the new primary's messages.
    const arrived = Effect.promise(() => survivor.xlen(streams.at(-1)!))
    const replicated = yield* arrived
    yield* until("the new primary has thirty more messages", Effect.map(arrived, (length) => length >= replicated + 30))
    yield* producing.stop

    const messages = yield* Effect.forEach(
      streams,
      (stream) =>
        Effect.promise(() => survivor.xrange(stream, "-", "+")).pipe(
          Effect.map((rows) => rows.map(([id]) => EntryId.make(id)))
        )
    )
    const last = messages.map((ids) => ids.at(-1))
    yield* until("all messages are committed", Effect.map(committed, (ids) => ids.every((id, i) => id === last[i])))
    // If a renewal was not replicated, the old owner may rely on its lease for another lease duration
    yield* until(
      "each data stream has one owner",
      Effect.map(
        Effect.forEach(processes, ({ client }) => client.owned),
        (owned) => owned.flat().map(({ stream }) => stream).sort().join() === streams.join()
      )
    )

    for (const [i, stream] of streams.entries()) {
      const of = runs.filter((run) => run.stream === stream)
      const processed = new Set(of.flatMap(({ ids }) => ids))
      assert.deepStrictEqual(
        messages[i]!.filter((id) => !processed.has(id)),
        [],
        `messages in ${stream} that nobody processed`
      )
      for (const { ids } of of) assert.deepStrictEqual(ids, [...new Set(ids)].sort(compareEntryIds))
      const tokens = of.map(({ token }) => token)
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((one, other) => one - other))
      const observed = samples.flatMap((ids) => ids[i] ?? []).map((id) => EntryId.make(id))
      assert.deepStrictEqual(observed, [...observed].sort(compareEntryIds))
      assert.isAbove(new Set(observed).size, 1)
    }
  })).pipe(Effect.provide(capturingLogs([])))

describe("data streams behind Sentinels", () => {
  it.live(
    "after the primary dies, no message is skipped and no replicated commit is undone",
    () => failover(({ primary }) => primary.kill("SIGKILL"))
  )

  it.live(
    "after the primary hangs and returns as a replica, no message is skipped and no replicated commit is undone",
    () =>
      failover((setup) =>
        Effect.gen(function*() {
          yield* setup.primary.pause
          yield* until("a new primary", Effect.map(setup.primaryPort, (port) => port === setup.replica.port))
          yield* setup.primary.resume
        })
      )
  )

  it.live(
    "after a planned failover, no message is skipped and no replicated commit is undone",
    () => failover(({ name, sentinels }) => sentinels[0]!.send("SENTINEL", "FAILOVER", name))
  )
})
