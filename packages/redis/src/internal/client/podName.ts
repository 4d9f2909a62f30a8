/**
 * Completes the `processName` of mutexes and data streams from the environment, so that operators find the pod of an
 * owner: the name is part of its id. The two `environment` modules call it.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

const variables = Config.all({
  name: Config.option(Config.NonEmptyString("POD_NAME")),
  ip: Config.option(Config.NonEmptyString("POD_IP"))
})

/**
 * Returns the explicit name, or else the pod's name, or else its IP address. If none is set, returns undefined, and the
 * name is `<pid>@<host>`.
 */
export const processNameOr = (explicit: string | undefined): Effect.Effect<string | undefined, Config.ConfigError> =>
  explicit === undefined
    ? Effect.map(variables, ({ ip, name }) => Option.getOrUndefined(Option.orElse(name, () => ip)))
    : Effect.succeed(explicit)
