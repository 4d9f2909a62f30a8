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
  /** For gauges: relative. */
  readonly modify: Update
}

export const make = (context: Context.Context<never>, byMutex: boolean): Recorder => {
  if (!byMutex) {
    return {
      update: (metric, input) => metric.updateUnsafe(input, context),
      modify: (metric, input) => metric.modifyUnsafe(input, context)
    }
  }
  const attributes = Context.get(context, Metric.CurrentMetricAttributes)
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
    modify: (metric, input, mutex) => metric.modifyUnsafe(input, contextOf(mutex))
  }
}
