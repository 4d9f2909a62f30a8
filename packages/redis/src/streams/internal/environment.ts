/** Reads the process name of a client of data streams from the environment. `RedisStreams` calls it. */
import type { Options } from "@effect-simba/core/streams/StreamClient"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { processNameOr } from "../../internal/client/podName.ts"

/** Adds the process name from the environment, unless it is set in code. */
export const complete = <O extends Options>(options: O): Effect.Effect<O, Config.ConfigError> =>
  Effect.map(processNameOr(options.processName), (processName) => ({ ...options, processName }))
