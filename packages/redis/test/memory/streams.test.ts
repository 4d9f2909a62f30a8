/** Stream ownership by the production scripts on the fake Redis, in virtual time. */
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import { RedisStreams } from "@effect-simba/redis/streams"
import { FakeNetwork, FakeRedis } from "@effect-simba/testkit"
import { describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as scenarios from "../support/streamScenarios.ts"

const stage = Effect.gen(function*() {
  const observer = Context.get(yield* Layer.build(FakeRedis.layerClient({ name: "observer" })), Redis)
  const names: Array<string> = []
  const context = yield* Effect.context<FakeRedis.FakeRedis | Scope.Scope>()
  const here = Effect.provideContext(context)
  const links = (change: (link: FakeNetwork.Link) => Effect.Effect<void>) =>
    here(Effect.forEach(names, (name) => Effect.flatMap(FakeNetwork.link(name), change), { discard: true }))
  return {
    open: (options) =>
      here(Effect.gen(function*() {
        const name = `process-${names.length}`
        names.push(name)
        const scope = yield* Scope.fork(yield* Effect.scope)
        const process = yield* Layer.buildWithScope(
          RedisStreams.layerRedis({ gracePeriod: "200 millis", ...options }).pipe(
            Layer.provide(FakeRedis.layerClient({ name, commandTimeout: "500 millis" }))
          ),
          scope
        )
        return {
          client: Context.get(process, StreamClient.StreamClient),
          start: (effect) => Effect.forkIn(effect, scope, { startImmediately: true }),
          close: Scope.close(scope, Exit.void),
          kill: Effect.andThen(
            here(Effect.flatMap(FakeNetwork.link(name), (link) => link.partition())),
            Effect.asVoid(Effect.forkDetach(Scope.close(scope, Exit.void)))
          )
        }
      })),
    send: (command, ...args) => observer.send(command!, ...args),
    pause: links((link) => link.clog()),
    resume: links((link) => link.release())
  } satisfies scenarios.Stage
})

const fake = (scenario: (stage: scenarios.Stage) => Effect.Effect<void, unknown>) =>
  Effect.gen(function*() {
    const playing = yield* Effect.forkChild(Effect.scoped(Effect.flatMap(stage, scenario)))
    while (playing.pollUnsafe() === undefined) yield* TestClock.adjust("50 millis")
    yield* Fiber.join(playing)
  }).pipe(Effect.provide(FakeRedis.layer()))

describe("data streams on the fake Redis", () => {
  it.effect("every announced stream is processed to its end, once, and leaves nothing behind", () =>
    fake(scenarios.finished))

  it.effect("thousands of handlers fail at once: no lease is lost, and each counts one failure", () =>
    fake(scenarios.failing))

  it.effect("streams of a dead owner are found without events, with larger tokens", () => fake(scenarios.orphans), {
    tags: ["G15", "G32"]
  })

  it.effect("streams of a dead owner are found by events, without sweeps", () => fake(scenarios.expiries))

  it.effect(
    "yielded streams continue at once, by a signal, and count no failure",
    () => fake(scenarios.handedBack),
    { tags: ["B57", "G20"] }
  )

  it.effect("a server that hangs: all leases are lost at the deadline, and taken again later", () =>
    fake(scenarios.hanging))

  it.effect("a deleted group is created again, and owned streams stay owned", () => fake(scenarios.groupGone))

  it.effect(
    "unreadable entries go to the dead letters, and the reader continues",
    () => fake(scenarios.malformed),
    { tags: ["G1", "G2", "B52"] }
  )

  it.effect("poison goes to the dead letters, and can be redriven", () => fake(scenarios.poison), { tags: ["B52"] })

  it.effect("dead letters are redriven by reason and count", () => fake(scenarios.redrivenAll))

  it.effect("a consumer that joins gets its share", () => fake(scenarios.balanced), { tags: ["B55"] })

  it.effect("messages that were trimmed before they were read are counted, and a rewritten stream is read", () =>
    fake(scenarios.gaps))

  it.effect("messages that a former owner skipped unnoticed are reported by the next", () => fake(scenarios.passedOver))

  it.effect("the message with the largest id is processed once, and its reader waits", () => fake(scenarios.largestId))

  it.effect("a successor resumes after the last commit, and the stale owner cannot move it", () =>
    fake(scenarios.checkpoints))

  it.effect("messages are processed in order through a death and a close, and none is skipped", () =>
    fake(scenarios.processed))
})
