/** Reads a data-stream client's process name from the environment. Called by `RedisStreams`. */
import type { Options } from "@effect-simba/core/streams/StreamClient"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { processNameOr } from "../../internal/client/podName.ts"

/** Adds the process name from the environment if it is not set in code. */
export const complete = <O extends Options>(options: O): Effect.Effect<O, Config.ConfigError> =>
  Effect.map(processNameOr(options.processName), (processName) => ({ ...options, processName }))
