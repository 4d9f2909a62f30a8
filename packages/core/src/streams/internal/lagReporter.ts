/** Reports the lag of the owned data streams as metrics, every 30 seconds. Run by `client`. */
import * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { isTransient } from "../../internal/lease/storeFailure.ts"
import * as log from "../../internal/log.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { StreamName } from "../StreamName.ts"
import type { ClientContext } from "./context.ts"

const interval = "30 seconds"

/** How many data streams to measure before other fibers may run. */
const stepSize = 200

export const report = ({ config, metrics, store, table }: ClientContext): Effect.Effect<never> => {
  const labels = { service: config.service }
  const lag = Metric.withAttributes(StreamMetrics.stream.lag, labels)
  const lagAge = Metric.withAttributes(StreamMetrics.stream.lagAge, labels)
  const update = (messages: number, age: number) =>
    Effect.sync(() => {
      metrics.update(lag, messages)
      metrics.update(lagAge, age)
    })

  /**
   * Returns undefined if the backend refuses the request, for example because the key has the wrong type: the other
   * data streams are still measured.
   */
  const lagOf = (stream: StreamName) =>
    Effect.catchIf(
      store.lag(stream),
      (error) => !isTransient(error),
      (error) => Effect.as(log.debug(`Cannot read the lag of "${stream}": ${error.message}`), undefined)
    )

  const measure = Effect.gen(function*() {
    let [messages, age] = [0, 0]
    for (const step of Arr.chunksOf(table.owned(), stepSize)) {
      const lags = yield* Effect.forEach(step, ({ stream }) => lagOf(stream), { concurrency: "unbounded" })
      for (const each of lags) {
        if (each === undefined) continue
        messages += each.messages
        age = Math.max(age, Duration.toMillis(each.age))
      }
      yield* Effect.yieldNow
    }
    yield* update(messages, age)
  }).pipe(
    // Keep the last value. Outages are reported elsewhere
    Effect.catch((error) => log.debug(`Cannot read the lag: ${error.message}`))
  )
  return Effect.forever(Effect.andThen(Effect.sleep(interval), measure)).pipe(Effect.ensuring(update(0, 0)))
}
