/** Runs the scenarios in `support/streamScenarios.ts` on the fake Redis, in virtual time. */
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
  it.effect("every announced data stream is processed once and leaves nothing behind", () => fake(scenarios.finished))

  it.effect("when 2,000 handlers fail simultaneously, no lease is lost and one failure is counted per data stream", () =>
    fake(scenarios.failing))

  it.effect(
    "without events, a dead owner's data streams are taken over with larger tokens",
    () => fake(scenarios.orphans),
    {
      tags: ["G15", "G32"]
    }
  )

  it.effect("without sweeps, events make another consumer take over a dead owner's data streams", () =>
    fake(scenarios.expiries))

  it.effect(
    "a signal makes another consumer take yielded data streams immediately, without counting a failure",
    () => fake(scenarios.handedBack),
    { tags: ["B57", "G20"] }
  )

  it.effect("if the server hangs, all leases expire and are reacquired later", () => fake(scenarios.hanging))

  it.effect("a deleted group is recreated without ending any ownership", () => fake(scenarios.groupGone))

  it.effect(
    "malformed entries are dead-lettered, and the reader continues",
    () => fake(scenarios.malformed),
    { tags: ["G1", "G2", "B52"] }
  )

  it.effect(
    "a data stream that keeps failing is dead-lettered and can be redriven",
    () => fake(scenarios.poison),
    { tags: ["B52"] }
  )

  it.effect("`redriveAll` selects dead letters by reason and number", () => fake(scenarios.redrivenAll))

  it.effect("a new consumer gets its share of the data streams", () => fake(scenarios.balanced), {
    tags: ["B55"]
  })

  it.effect("reports trimmed messages as missed, and reads a rewritten data stream from its beginning", () =>
    fake(scenarios.gaps))

  it.effect("an owner reports messages that the previous owner missed without noticing", () =>
    fake(scenarios.passedOver))

  it.effect("a message with the largest possible id is processed only once", () => fake(scenarios.largestId))

  it.effect("the next owner resumes after the last commit, and a stale owner cannot commit", () =>
    fake(scenarios.checkpoints))

  it.effect("messages are processed in order and without gaps even when owners crash or shut down", () =>
    fake(scenarios.processed))
})
