// A replacement for `@effect/vitest` in which each test builds the layers of its block itself. When a test is repeated
// with another mutant, it must not see state that the previous mutant left behind.
import { Effect, Layer } from "effect"
import * as V from "effect-vitest-original"
import { TestClock, TestConsole } from "effect/testing"

const services = Layer.mergeAll(TestConsole.layer, TestClock.layer())

const within = (layer, options = {}) => (...args) => {
  const all = options.excludeTestServices ? layer : Layer.provideMerge(layer, services)
  const provided = (self) => (...args) => self(...args).pipe(Effect.scoped, Effect.provide(Layer.fresh(all)))
  const register = (test) => (name, self, timeout) => test(name, provided(self), timeout)
  const { live } = V.it
  const effect = Object.assign(register(live), {
    skip: register(live.skip),
    only: register(live.only),
    fails: register(live.fails),
    skipIf: (condition) => register(live.skipIf(condition)),
    runIf: (condition) => register(live.runIf(condition)),
    each: (cases) => register(live.each(cases)),
    prop: (name, arbitraries, self, timeout) => live.prop(name, arbitraries, provided(self), timeout)
  })
  const own = {
    effect,
    layer: (nested, rest) => within(Layer.provideMerge(nested, all), { ...options, ...rest, excludeTestServices: true })
  }
  const methods = new Proxy(V.it, { get: (target, name) => name in own ? own[name] : Reflect.get(target, name) })
  return args.length === 1 ? args[0](methods) : V.describe(args[0], () => args[1](methods))
}

export * from "effect-vitest-original"
export const layer = within
export const it = new Proxy(V.it, { get: (target, name) => name === "layer" ? within : Reflect.get(target, name) })
