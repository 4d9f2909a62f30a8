/**
 * Where a layer's figures go. Updated in place, without an effect each: an uncontended lock makes five of them.
 *
 * Always in the context in which the layer was built, so that what a gauge was raised by it is lowered by too, whichever
 * fiber gets there.
 */
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"

export type Update = <Input, State>(metric: Metric.Metric<Input, State>, input: Input, mutex: string) => void

export interface Recorder {
  readonly update: Update
  /** Adds one to a counter for each. */
  readonly count: (
    counter: Metric.Metric<number, unknown>,
    subjects: ReadonlyArray<{ readonly mutex: string }>
  ) => void
  /** For gauges: relative. */
  readonly modify: Update
}

export const make = (layer: Context.Context<never>, byMutex: boolean): Recorder => {
  const attributes = Context.get(layer, Metric.CurrentMetricAttributes)
  // Only what metrics look for: each update looks for it, and in the layer's own context would pass by all the rest
  const context: Context.Context<never> = Context.make(Metric.MetricRegistry, Context.get(layer, Metric.MetricRegistry))
    .pipe(Context.add(Metric.CurrentMetricAttributes, attributes))
  if (!byMutex) {
    return {
      update: (metric, input) => metric.updateUnsafe(input, context),
      count: (counter, { length }) => {
        if (length > 0) counter.updateUnsafe(length, context)
      },
      modify: (metric, input) => metric.modifyUnsafe(input, context)
    }
  }
  const contexts = new Map<string, Context.Context<never>>()
  const contextOf = (mutex: string) => {
    let own = contexts.get(mutex)
    if (own === undefined) {
      own = Context.add(context, Metric.CurrentMetricAttributes, { ...attributes, mutex })
      contexts.set(mutex, own)
    }
    return own
  }
  return {
    update: (metric, input, mutex) => metric.updateUnsafe(input, contextOf(mutex)),
    count: (counter, subjects) => {
      for (const { mutex } of subjects) counter.updateUnsafe(1, contextOf(mutex))
    },
    modify: (metric, input, mutex) => metric.modifyUnsafe(input, contextOf(mutex))
  }
}
