/** Runs the data-stream scenarios on a real server; `memory/streams.test.ts` runs them on the fake one. */
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

/** Runs a scenario on the shared server. */
const shared = (scenario: Scenario) => Effect.flatMap(RedisServer, (server) => scenario(stageOn(server)))

/** Runs a scenario that suspends, restarts or cuts off its server, which is therefore a separate one. */
const alone = (scenario: Scenario) => Effect.flatMap(RedisServer.start(), (server) => scenario(stageOn(server)))

layer(RedisServer.layer, { excludeTestServices: true })("data streams on Redis", (it) => {
  it.effect("every announced data stream is processed once and leaves nothing behind", () => shared(scenarios.finished))

  it.effect("when 2,000 handlers fail simultaneously, no lease is lost and one failure is counted per data stream", () =>
    shared(scenarios.failing))

  it.effect(
    "without events, a dead owner's data streams are taken over with larger tokens",
    () => shared(scenarios.orphans),
    { tags: ["G15", "G32"] }
  )

  it.effect(
    "a signal makes another consumer take yielded data streams immediately, without counting a failure",
    () => shared(scenarios.handedBack),
    { tags: ["B57", "G20"] }
  )

  it.effect("a deleted group is recreated without ending any ownership", () => shared(scenarios.groupGone))

  it.effect(
    "malformed entries are dead-lettered, and the reader continues",
    () => shared(scenarios.malformed),
    { tags: ["G1", "G2", "B52"] }
  )

  it.effect(
    "a data stream that keeps failing is dead-lettered and can be redriven",
    () => shared(scenarios.poison),
    { tags: ["B52"] }
  )

  it.effect("a new consumer gets its share of the data streams", () => shared(scenarios.balanced), {
    tags: ["B55"]
  })

  it.effect("reports trimmed messages as missed, and reads a rewritten data stream from its beginning", () =>
    shared(scenarios.gaps))

  it.effect("an owner reports messages that the previous owner missed without noticing", () =>
    shared(scenarios.passedOver))

  it.effect("a message with the largest possible id is processed only once", () => shared(scenarios.largestId))

  it.effect("the next owner resumes after the last commit, and a stale owner cannot commit", () =>
    shared(scenarios.checkpoints))

  it.effect("messages are processed in order and without gaps even when owners crash or shut down", () =>
    shared(scenarios.processed))
})

describe("data streams when Redis fails", () => {
  it.live("without sweeps, events make another consumer take over a dead owner's data streams", () =>
    alone(scenarios.expiries))

  it.live("if the server hangs, all leases expire and are reacquired later", () => alone(scenarios.hanging))
})
