/** Hooks such as `onError` may use services from the program that passes them. */
import { StreamClient, StreamMessages } from "@effect-simba/core/streams"
import type { StreamLease } from "@effect-simba/core/streams/StreamLease"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Context, Effect, Layer, Schedule, Schema } from "effect"
import { TestClock } from "effect/testing"
import { message, ScriptedLease } from "../support/scriptedLease.ts"
import * as fleet from "../support/streamFleet.ts"

class Pager extends Context.Service<Pager, { readonly calls: Array<string> }>()("test/Pager") {}
class Rate extends Context.Service<Rate, { readonly times: number }>()("test/Rate") {}

const call = (who: string) => Pager.use(({ calls }) => Effect.sync(() => void calls.push(who)))

const pager = () => {
  const calls: Array<string> = []
  return { calls, layer: Layer.succeed(Pager, { calls }) }
}

describe("onError", () => {
  it.effect("onError can use services from its program", () =>
    fleet.test(Effect.gen(function*() {
      const { calls, layer } = pager()
      const { a } = yield* fleet.ofOne
      const run = a.client.run(Effect.fail("x"), { onError: ({ stream }) => call(stream) })
      expectTypeOf<Effect.Services<typeof run>>().toEqualTypeOf<Pager>()
      yield* a.start(Effect.provide(run, layer))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(calls, ["s1"])
    })))

  it("`run` requires the services that onError, the handler and the retry schedule need", () => {
    const retry = Schedule.recurs(2).pipe(
      Schedule.modifyDelay(() => Rate.use(({ times }) => Effect.succeed(times)))
    )
    const run = StreamClient.run(Effect.void, { retry, onError: () => call("onError") })
    expectTypeOf<Effect.Services<typeof run>>().toEqualTypeOf<StreamClient.StreamClient | Rate | Pager>()
  })
})

describe("onGap", () => {
  const Numbered = Schema.Struct({ n: Schema.FiniteFromString })

  it.effect("can use services from its program", () =>
    Effect.gen(function*() {
      const { calls, layer } = pager()
      const lease = new ScriptedLease()
      const run = StreamMessages.process(Numbered, () => Effect.void, { onGap: ({ until }) => call(until) })
      expectTypeOf<Effect.Services<typeof run>>().toEqualTypeOf<StreamLease | Pager>()
      yield* Effect.forkChild(Effect.provide(run, Layer.merge(lease.layer, layer)))
      yield* TestClock.adjust("1 minute")
      lease.burst(0, message("3-0", { n: "3" }))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(calls, ["3-0"])
    }))
})
