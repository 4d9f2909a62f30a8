/** The options of a client that the environment has. */
import type { Options } from "@effect-simba/core/streams/StreamClient"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

const podName = Config.all({
  name: Config.option(Config.NonEmptyString("POD_NAME")),
  ip: Config.option(Config.NonEmptyString("POD_IP"))
}).pipe(Config.map(({ ip, name }) => Option.getOrUndefined(Option.orElse(name, () => ip))))

/** Without a process name, it gets the name of the pod, or else its address, if there is one. */
export const complete = <O extends Options>(options: O): Effect.Effect<O, Config.ConfigError> =>
  Effect.map(podName, (name) => ({ ...options, processName: options.processName ?? name }))
