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

/** On the server that all of these tests share. */
const shared = (scenario: Scenario) => Effect.flatMap(RedisServer, (server) => scenario(stageOn(server)))

/** On a separate server, because the scenario damages it. */
const alone = (scenario: Scenario) => Effect.flatMap(RedisServer.start(), (server) => scenario(stageOn(server)))

layer(RedisServer.layer, { excludeTestServices: true })("data streams on Redis", (it) => {
  it.effect("every announced stream is processed to its end, once, and leaves nothing behind", () =>
    shared(scenarios.finished))

  it.effect("thousands of handlers fail at once: no lease is lost, and each counts one failure", () =>
    shared(scenarios.failing))

  it.effect(
    "streams of a dead owner are found without events, with larger tokens",
    () => shared(scenarios.orphans),
    { tags: ["G15", "G32"] }
  )

  it.effect(
    "yielded streams continue at once, by a signal, and count no failure",
    () => shared(scenarios.handedBack),
    { tags: ["B57", "G20"] }
  )

  it.effect("a deleted group is created again, and owned streams stay owned", () => shared(scenarios.groupGone))

  it.effect(
    "unreadable entries go to the dead letters, and the reader continues",
    () => shared(scenarios.malformed),
    { tags: ["G1", "G2", "B52"] }
  )

  it.effect("poison goes to the dead letters, and can be redriven", () => shared(scenarios.poison), { tags: ["B52"] })

  it.effect("a consumer that joins gets its share", () => shared(scenarios.balanced), { tags: ["B55"] })

  it.effect("messages that were trimmed before they were read are counted, and a rewritten stream is read", () =>
    shared(scenarios.gaps))

  it.effect("messages that a former owner skipped unnoticed are reported by the next", () =>
    shared(scenarios.passedOver))

  it.effect("the message with the largest id is processed once, and its reader waits", () =>
    shared(scenarios.largestId))

  it.effect("a successor resumes after the last commit, and the stale owner cannot move it", () =>
    shared(scenarios.checkpoints))

  it.effect("messages are processed in order through a death and a close, and none is skipped", () =>
    shared(scenarios.processed))
})

describe("data streams on a Redis that fails", () => {
  it.live("streams of a dead owner are found by events, without sweeps", () => alone(scenarios.expiries))

  it.live("a server that hangs: all leases are lost at the deadline, and taken again later", () =>
    alone(scenarios.hanging))
})
