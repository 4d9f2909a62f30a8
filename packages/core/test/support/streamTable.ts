/** A client's table of data streams, without the client. */
import { Clock, Effect } from "effect"
import * as metricsRecorder from "../../src/internal/lease/metricsRecorder.ts"
import { slicedTasks } from "../../src/internal/lease/workSlices.ts"
import { check } from "../../src/streams/internal/config.ts"
import { StreamTable } from "../../src/streams/internal/streamTable.ts"
import type { Options } from "../../src/streams/StreamClient.ts"

export const newTable = Effect.fnUntraced(function*(
  options: Partial<Options> = {},
  recorder?: Partial<metricsRecorder.Recorder>
) {
  const config = yield* check({ service: "svc", processName: "a", ...options })
  const metrics = recorder === undefined
    ? metricsRecorder.make(yield* Effect.context<never>(), false, [])
    : recorder as metricsRecorder.Recorder
  return { config, metrics, table: new StreamTable(yield* Clock.Clock, yield* slicedTasks, config, metrics) }
})
