/**
 * Reports malformed data from a server or another program. A malformed reply fails its request with `ProtocolError`. A
 * malformed message is logged and counted, and its subscription continues.
 */
import * as MutexMetrics from "@effect-simba/core/MutexMetrics"
import { ProtocolError } from "@effect-simba/core/SimbaError"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as log from "./log.ts"

/** `where` names the data in the error message. */
export const malformed = ProtocolError.of

export const reportMalformed = (channel: string, error: ProtocolError): Effect.Effect<void> =>
  log.warning(error.message).pipe(
    Effect.annotateLogs({ channel }),
    Effect.andThen(Metric.update(MutexMetrics.mutex.malformedMessages, 1))
  )
