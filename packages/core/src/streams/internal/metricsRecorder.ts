/** Where a client's figures go: always to the context in which its layer was built, without an effect each. */
import * as Effect from "effect/Effect"
import type * as Metric from "effect/Metric"

export interface MetricsRecorder {
  readonly update: <Input, State>(metric: Metric.Metric<Input, State>, input: Input) => void
  /** For gauges: relative. */
  readonly modify: <Input, State>(metric: Metric.Metric<Input, State>, input: Input) => void
  /** Logs and the like, from where no effect can run. */
  readonly run: (effect: Effect.Effect<void>) => void
}

export const make: Effect.Effect<MetricsRecorder> = Effect.contextWith((context) => {
  const run = Effect.runForkWith(context)
  return Effect.succeed({
    update: (metric, input) => metric.updateUnsafe(input, context),
    modify: (metric, input) => metric.modifyUnsafe(input, context),
    run: (effect) => void run(effect)
  })
})
