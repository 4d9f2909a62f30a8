/**
 * Reads the `processName` for mutexes and data streams from the environment. The name is part of an owner's id, so
 * operators can find the owner's pod. Called by the two `environment` modules.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

const variables = Config.all({
  name: Config.option(Config.NonEmptyString("POD_NAME")),
  ip: Config.option(Config.NonEmptyString("POD_IP"))
})

/**
 * Returns the explicit name, or else the pod's name, or else its IP address. Returns undefined if none of them are set;
 * the name is then `<pid>@<host>`.
 */
export const processNameOr = (explicit: string | undefined): Effect.Effect<string | undefined, Config.ConfigError> =>
  explicit === undefined
    ? Effect.map(variables, ({ ip, name }) => Option.getOrUndefined(Option.orElse(name, () => ip)))
    : Effect.succeed(explicit)
