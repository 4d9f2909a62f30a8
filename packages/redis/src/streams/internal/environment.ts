/** The options of a client that come from the environment. */
import type { Options } from "@effect-simba/core/streams/StreamClient"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { processNameOr } from "../../internal/client/podName.ts"

/** Reads the process name that the caller left out. */
export const complete = <O extends Options>(options: O): Effect.Effect<O, Config.ConfigError> =>
  Effect.map(processNameOr(options.processName), (processName) => ({ ...options, processName }))
