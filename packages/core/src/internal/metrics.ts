/** Constructors for the metrics in `MutexMetrics` and `StreamMetrics`. */
import * as Metric from "effect/Metric"

type Counters<Value extends string> = { readonly [V in Value]: Metric.Counter<number> }

export const counter = (id: string, description: string, attributes?: Record<string, string>) =>
  Metric.counter(id, { description, incremental: true, attributes })

/** A counter for each value of the label. */
export const counters = <const Value extends string>(
  id: string,
  description: string,
  label: string,
  values: ReadonlyArray<Value>
): Counters<Value> =>
  Object.fromEntries(values.map((value) => [value, counter(id, description, { [label]: value })])) as Counters<Value>
