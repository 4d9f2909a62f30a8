/**
 * Reports malformed data from a server or another program, for all code that decodes replies or messages. A malformed
 * reply fails its request with `ProtocolError`. A malformed message is logged and counted, and the subscription
 * continues.
 */
import * as MutexMetrics from "@effect-simba/core/MutexMetrics"
import { ProtocolError } from "@effect-simba/core/SimbaError"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as log from "./log.ts"

/**
 * Creates the error. `where` names the data, `input` is the data itself, and `problem` says what is wrong with it. The
 * error message includes an excerpt of `input`.
 */
export const malformed = ProtocolError.of

/** Logs and counts a malformed message on a channel. */
export const reportMalformed = (channel: string, error: ProtocolError): Effect.Effect<void> =>
  log.warning(error.message).pipe(
    Effect.annotateLogs({ channel }),
    Effect.andThen(Metric.update(MutexMetrics.mutex.malformedMessages, 1))
  )
