import { type Lease, Mutex, type SimbaError } from "@effect-simba/core"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Context, Effect, Option, type Scope } from "effect"
import * as leaseOptions from "../../src/internal/mutex/leaseOptions.ts"
import { start, TestLive } from "../support/setup.ts"

const Plain = Mutex.named("plain")
const Timed = Mutex.named("timed", { timeout: "1 second" })
const Short = Mutex.named("short", { ttl: "1 second" })

describe("a named mutex", () => {
  it.effect("has the operations for its name, and applies its options", () =>
    Effect.gen(function*() {
      const token = yield* Timed.withLock((lease) => Effect.succeed(lease.token))
      assert.isAbove(token, 0)
      const lease = yield* Timed.acquire
      assert.strictEqual(lease.mutex, "timed")
      assert.deepInclude(yield* Timed.owner, { _tag: "Held", owner: lease.id })
      assert.deepInclude((yield* Timed.inspect).ownership, { _tag: "Held" })
      assert.isTrue(Option.isNone(yield* Timed.acquireIfAvailable))
      assert.isTrue(Option.isNone(yield* Timed.withLockIfAvailable(Effect.void)))
      const waiting = yield* start(Effect.flip(Effect.scoped(Timed.acquire)))
      assert.deepInclude(yield* Timed.forceRelease, { owner: lease.id })
      assert.strictEqual((yield* lease.lost).reason._tag, "ForcedRelease")
      waiting.interruptUnsafe()
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it("immediately refuses a name or an option that can never work", () => {
    const thrown = (make: () => unknown) => {
      try {
        make()
      } catch (error) {
        return error
      }
      return undefined
    }
    assert.deepInclude(thrown(() => Mutex.named(" ")), { _tag: "InvalidName", kind: "mutex" })
    const refused = (options: Mutex.AcquireOptions) => thrown(() => Mutex.named("m", options))
    assert.deepInclude(refused({ timeout: -1 }), { _tag: "InvalidConfig", option: "timeout" })
    assert.deepInclude(refused({ ttl: 0 }), { _tag: "InvalidConfig", option: "ttl" })
    assert.deepInclude(refused({ maxHold: "0 millis" }), { _tag: "InvalidConfig", option: "maxHold" })
    assert.deepInclude(refused({ localTurn: -1 }), { _tag: "InvalidConfig", option: "localTurn" })
  })

  it("has no impossible errors in its types", () => {
    type Common = SimbaError.StoreError | SimbaError.AlreadyHeld
    const withLock = Plain.withLock(Effect.fail("mine" as const))
    expectTypeOf<Effect.Error<typeof Plain.acquire>>().toEqualTypeOf<Common>()
    expectTypeOf<Effect.Error<typeof Timed.acquire>>().toEqualTypeOf<Common | SimbaError.AcquireTimeout>()
    expectTypeOf<Effect.Error<typeof Short.acquire>>().toEqualTypeOf<Common | SimbaError.InvalidConfig>()
    expectTypeOf<Effect.Error<typeof withLock>>().toEqualTypeOf<
      Common | SimbaError.LeaseLost | "mine"
    >()
    expectTypeOf<Effect.Error<typeof Plain.acquireIfAvailable>>().toEqualTypeOf<SimbaError.StoreError>()
    expectTypeOf(Plain.withLock((lease) => Effect.succeed(lease))).toExtend<
      Effect.Effect<Lease.Lease, unknown, Mutex.Mutex>
    >()
  })

  it("includes an option's errors and services in its types if that option may be set", () => {
    class Probe extends Context.Service<Probe, { readonly isAlive: boolean }>()("test/Probe") {}
    const anyOptions: Mutex.AcquireOptions<Probe> = {}
    const Any = Mutex.named("any", anyOptions)
    expectTypeOf<Effect.Error<typeof Any.acquire>>().toEqualTypeOf<
      Exclude<SimbaError.AcquireError, SimbaError.InvalidName>
    >()
    expectTypeOf<Effect.Services<typeof Any.acquireIfAvailable>>().toEqualTypeOf<Mutex.Mutex | Scope.Scope | Probe>()
    const Unset = Mutex.named("unset", { timeout: undefined, ttl: undefined })
    expectTypeOf<Effect.Error<typeof Unset.acquire>>().toEqualTypeOf<Effect.Error<typeof Plain.acquire>>()
  })
})

it("an option that no layer can accept is refused when a mutex is named", () => {
  const options = [{ ttl: 0 }, { transition: 0 }, { maxHold: 0 }, { localTurn: -1 }, { timeout: -1 }, { isAlive: true }]
  for (const option of options) {
    assert.throws(() => leaseOptions.checkName("m", option as never), Object.keys(option)[0])
  }
  assert.strictEqual<string>(leaseOptions.checkName("m", { ttl: 1, transition: 1, maxHold: 1, localTurn: 0 }), "m")
})
