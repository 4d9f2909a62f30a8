/** The scenarios of data streams on a real server; `memory/streams.test.ts` runs them on the fake one. */
import { IoRedis } from "@effect-simba/redis"
import { describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { RedisServer } from "../../support/harness.ts"
import type { Server } from "../../support/redisServer.ts"
import * as scenarios from "../../support/streamScenarios.ts"
import { stageOver } from "../../support/streamStage.ts"

const stageOn = (server: Server): scenarios.Stage =>
  stageOver(IoRedis.layer({ url: server.url }), {
    send: server.send,
    pause: server.pause,
    resume: server.resume
  })

type Scenario = (stage: scenarios.Stage) => Effect.Effect<void, unknown>

/** Runs a scenario on the server that these tests share. */
const shared = (scenario: Scenario) => Effect.flatMap(RedisServer, (server) => scenario(stageOn(server)))

/** Runs a scenario on a separate server, because it suspends, restarts or cuts off the server. */
const alone = (scenario: Scenario) => Effect.flatMap(RedisServer.start(), (server) => scenario(stageOn(server)))

layer(RedisServer.layer, { excludeTestServices: true })("data streams on Redis", (it) => {
  it.effect("every announced data stream is processed once, and leaves nothing behind", () =>
    shared(scenarios.finished))

  it.effect("2,000 handlers that fail at the same time lose no lease, and one failure is counted for each", () =>
    shared(scenarios.failing))

  it.effect(
    "without events, a dead owner's data streams are taken with larger tokens",
    () => shared(scenarios.orphans),
    { tags: ["G15", "G32"] }
  )

  it.effect(
    "yielded data streams are taken immediately because of a signal, and no failure is counted",
    () => shared(scenarios.handedBack),
    { tags: ["B57", "G20"] }
  )

  it.effect("a deleted group is created again, and owned data streams stay owned", () => shared(scenarios.groupGone))

  it.effect(
    "malformed entries become dead letters, and the reader continues",
    () => shared(scenarios.malformed),
    { tags: ["G1", "G2", "B52"] }
  )

  it.effect(
    "a data stream that always fails becomes a dead letter, and can be redriven",
    () => shared(scenarios.poison),
    { tags: ["B52"] }
  )

  it.effect("a consumer that joins gets its share of the data streams", () => shared(scenarios.balanced), {
    tags: ["B55"]
  })

  it.effect("trimmed messages are reported as missed, and a rewritten data stream is read from its beginning", () =>
    shared(scenarios.gaps))

  it.effect("an owner reports messages that the previous owner missed without noticing", () =>
    shared(scenarios.passedOver))

  it.effect("the message with the largest id is processed once, and its reader waits", () =>
    shared(scenarios.largestId))

  it.effect("the next owner resumes after the last commit, and a stale owner cannot commit", () =>
    shared(scenarios.checkpoints))

  it.effect("messages are processed in order and without gaps although owners die and close", () =>
    shared(scenarios.processed))
})

describe("data streams on a Redis that fails", () => {
  it.live("without sweeps, events make another consumer take a dead owner's data streams", () =>
    alone(scenarios.expiries))

  it.live("if the server hangs, all leases are lost at their deadline, and taken again later", () =>
    alone(scenarios.hanging))
})
