/**
 * Updates one layer's metrics synchronously: an uncontended lock updates five metrics, and an effect for each would
 * cost too much. `heldLeases` creates a recorder for a layer, and `client` for a stream client.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/** `mutex` labels the metric if `metricsByMutex` is set. */
type Update = <Input, State>(metric: Metric.Metric<Input, State>, input: Input, mutex?: string) => void

export interface Recorder {
  readonly update: Update
  /** Adds to a gauge. */
  readonly modify: Update
  /** Adds one to a counter for each subject, in a single update unless metrics are labelled by mutex. */
  readonly count: (
    counter: Metric.Metric<number, unknown>,
    subjects: ReadonlyArray<{ readonly mutex?: string }>
  ) => void
  /** Records the smallest value or, if metrics are labelled by mutex, the value of each of its subjects. */
  readonly least: (
    metric: Metric.Metric<number, unknown>,
    values: ReadonlyArray<number>,
    subjects: ReadonlyArray<ReadonlyArray<{ readonly mutex?: string }>>
  ) => void
  /** Runs effects such as logging from synchronous code. */
  readonly run: (effect: Effect.Effect<void>) => void
}

/** Uses the metric registry and the attributes from `layer`, no matter which fiber updates a metric. */
export const make = (
  layer: Context.Context<never>,
  byMutex: boolean,
  alarms: ReadonlyArray<Metric.Counter<number>>
): Recorder => {
  const attributes = Context.get(layer, Metric.CurrentMetricAttributes)
  // Read by each update: searching the layer's whole context takes longer
  const context: Context.Context<never> = Context.make(Metric.MetricRegistry, Context.get(layer, Metric.MetricRegistry))
    .pipe(Context.add(Metric.CurrentMetricAttributes, attributes))
  // Start the counters at zero: alarms must see the first loss
  for (const alarm of alarms) alarm.updateUnsafe(0, context)
  const contexts = new Map<string, Context.Context<never>>()
  const contextOf = (mutex: string | undefined) => {
    if (!byMutex || mutex === undefined) return context
    let own = contexts.get(mutex)
    if (own === undefined) {
      own = Context.add(context, Metric.CurrentMetricAttributes, { ...attributes, mutex })
      contexts.set(mutex, own)
    }
    return own
  }
  const fork = Effect.runForkWith(layer)
  return {
    update: (metric, input, mutex) => metric.updateUnsafe(input, contextOf(mutex)),
    modify: (metric, input, mutex) => metric.modifyUnsafe(input, contextOf(mutex)),
    count: (counter, subjects) => {
      if (byMutex) { for (const { mutex } of subjects) counter.updateUnsafe(1, contextOf(mutex)) }
      else if (subjects.length > 0) counter.updateUnsafe(subjects.length, context)
    },
    least: (metric, values, subjects) => {
      if (byMutex) {
        subjects.forEach((own, index) => {
          for (const { mutex } of own) metric.updateUnsafe(values[index]!, contextOf(mutex))
        })
      } else if (values.length > 0) metric.updateUnsafe(Math.min(...values), context)
    },
    run: (effect) => void fork(effect)
  }
}
