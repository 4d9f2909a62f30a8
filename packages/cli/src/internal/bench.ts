/** `bench`: measures an uncontended acquire and a hand-off on this server and network. */
import * as Mutex from "@effect-simba/core/Mutex"
import * as Command from "effect/cli/Command"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { mutexes } from "./mutexCommands.ts"
import { print, table } from "./output.ts"
import { durationFlag } from "./settings.ts"

type Mutexes = Mutex.Mutex["Service"]

/** Milliseconds on a monotonic clock. */
const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

/** The minimum number of samples, taken even if that exceeds the duration. Fewer would not be meaningful. */
const fewest = 10

/** A mutex client with its own connections, as in a separate process. */
const member = Effect.map(Layer.build(Layer.fresh(mutexes)), Context.get(Mutex.Mutex))

const summary = (name: string, times: ReadonlyArray<number>) => {
  const sorted = [...times].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? NaN
  return { name, count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) }
}

const free = Effect.fnUntraced(function*(mutex: Mutexes, name: string, until: number) {
  const times: Array<number> = []
  while ((yield* now) < until || times.length < fewest) {
    const [took] = yield* Effect.timed(Effect.scoped(mutex.acquire(name)))
    times.push(Duration.toMillis(took))
  }
  return summary("acquire and release", times)
})

/** Two members take turns. Measures the time from one member's release to the other's grant. */
const handOff = Effect.fnUntraced(function*(members: ReadonlyArray<Mutexes>, name: string, until: number) {
  const times: Array<number> = []
  let released: number | undefined
  const turn = Effect.fnUntraced(function*(mutex: Mutexes) {
    yield* mutex.acquire(name)
    const granted = yield* now
    if (released !== undefined) times.push(granted - released)
    // Give the other member time to queue
    yield* Effect.sleep("5 millis")
    released = yield* now
  }, Effect.scoped)
  const turns = Effect.fnUntraced(function*(mutex: Mutexes) {
    while ((yield* now) < until || times.length < fewest) yield* turn(mutex)
  })
  yield* Effect.forEach(members, turns, { concurrency: "unbounded" })
  return summary("hand-off", times)
})

export const bench = Command.make(
  "bench",
  { duration: durationFlag("for", "Minimum duration of each measurement (default: 2s)") },
  Effect.fnUntraced(function*({ duration = Duration.seconds(2) }) {
    const [a, b] = yield* Effect.all([member, member])
    const name = `effect-simba:bench:${yield* Random.nextIntBetween(0, 2 ** 40)}`
    const end = Effect.map(now, (millis) => millis + Duration.toMillis(duration))
    yield* Effect.scoped(a.acquire(name))
    const results = [yield* free(a, name, yield* end), yield* handOff([a, b], name, yield* end)]
    const millis = (value: number) => `${value.toFixed(2)} ms`
    yield* print(results, (paint) =>
      table(results, {
        "": ({ name }) => name,
        COUNT: ({ count }) => count,
        MEDIAN: ({ p50 }) => millis(p50),
        P99: ({ p99 }) => millis(p99),
        MAX: ({ max }) => millis(max)
      }, paint))
  }, Effect.scoped)
).pipe(Command.withDescription("Measure how long an acquire and a hand-off take on this server"))
