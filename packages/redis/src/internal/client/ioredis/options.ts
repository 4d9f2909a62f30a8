/**
 * Combines a user's connection options from code, URL and environment, and validates them. The settings that users
 * cannot change are in `forcedSettings`.
 */
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { durationVariable } from "../durationVariable.ts"
import type { PoolOptions } from "../effectRedis.ts"
import type { ClientOptions } from "./forcedSettings.ts"
import * as url from "./url.ts"

/** Options that all layers share. They are documented in `IoRedis.Options`. */
export interface Common {
  readonly commandTimeout?: Duration.Input | undefined
  readonly connectTimeout?: Duration.Input | undefined
  readonly pool?: PoolOptions | undefined
  readonly serverChecks?: boolean | undefined
}

export interface SingleOptions extends Common {
  readonly url?: string | Redacted.Redacted | undefined
  readonly client?: ClientOptions | undefined
}

/** Drops options that are `undefined`, because they would override the environment and the URL. */
export const defined = <A extends object>(options: A | undefined): Partial<A> =>
  Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as Partial<A>

export const ofConnection: ReadonlyArray<string> = ["url", "client", "connectTimeout", "pool", "serverChecks"]

/**
 * Builds a layer whose connection options are inside `redis`. Refuses connection options outside it, because the layer
 * would ignore them and connect to the default server.
 */
export const within = <A, E, R>(
  options: {
    readonly commandTimeout?: Duration.Input | undefined
    readonly redis?: SingleOptions | undefined
  } = {},
  layer: (connection: SingleOptions) => Layer.Layer<A, E, R>
): Layer.Layer<A, E | InvalidConfig, R> => {
  const misplaced = ofConnection.find((option) => (options as Record<string, unknown>)[option] !== undefined)
  if (misplaced !== undefined) {
    const problem = "it is a connection option: set it inside redis"
    return Layer.effectContext(Effect.fail(new InvalidConfig({ option: misplaced, problem })))
  }
  // Use the same timeout for the connection, unless it has its own
  return layer({ ...options.redis, commandTimeout: options.redis?.commandTimeout ?? options.commandTimeout })
}

const duration = (option: string, input: Duration.Input) => {
  const value = Duration.fromInput(input)
  return Option.isSome(value) && Duration.isFinite(value.value) && Duration.toMillis(value.value) >= 1
    ? Effect.succeed(value.value)
    : Effect.fail(
      new InvalidConfig({ option, problem: "it must be a duration of at least 1 millisecond, such as \"10 seconds\"" })
    )
}

export const timeouts = ({ commandTimeout = "1 second", connectTimeout = "2 seconds" }: Common) =>
  Effect.all({
    commandTimeout: duration("commandTimeout", commandTimeout),
    connectTimeout: duration("connectTimeout", connectTimeout)
  })

export const prefixed = new InvalidConfig({
  option: "keyPrefix",
  problem: "it is not supported, because channels would not be prefixed: use another database, or other names"
})

export const stale = new InvalidConfig({
  option: "scaleReads",
  problem: "replicas may return stale data: remove it"
})

/** Recognizes a client from any copy of ioredis. */
const isClient = (input: unknown) =>
  typeof (input as { readonly duplicate?: unknown } | undefined)?.duplicate === "function"

/**
 * Validates ioredis options. Refuses reads from replicas, and `keyPrefix`, because ioredis would not add the prefix to
 * channels in scripts or to SCAN patterns.
 */
export const driverOptions = <A extends object>(input: A | undefined): Effect.Effect<Partial<A>, InvalidConfig> => {
  if (isClient(input)) {
    return Effect.fail(
      new InvalidConfig({ option: "client", problem: "it is a client, not options: pass it to IoRedis.layerClient" })
    )
  }
  const options = defined(input)
  if ("keyPrefix" in options && options.keyPrefix !== "") return Effect.fail(prefixed)
  return "scaleReads" in options && options.scaleReads !== "master" ? Effect.fail(stale) : Effect.succeed(options)
}

export const partsOf = (text: SingleOptions["url"]): Effect.Effect<url.Parts, InvalidConfig> =>
  text === undefined ? Effect.succeed({}) : url.read(Redacted.isRedacted(text) ? Redacted.value(text) : text)

/** Reads a variable only if the option is not set in code, because an unused variable may be invalid. */
const unless = <A>(defined: unknown, variable: Config.Config<A>): Config.Config<A | undefined> =>
  defined === undefined ? Config.withDefault(variable, undefined) : Config.succeed(undefined)

/**
 * Reads options from the environment if they are not set in code, and adds the database and the credentials in a URL
 * that is. If that URL contains a password, the user and password from the environment are ignored.
 */
export const environmentBeside = Effect.fnUntraced(
  function*({ client, commandTimeout, connectTimeout, url }: SingleOptions) {
    const { db, password, username } = yield* partsOf(url)
    const environment = yield* Config.all({
      url: unless(url, Config.Redacted("REDIS_URL")),
      commandTimeout: unless(commandTimeout, durationVariable("REDIS_COMMAND_TIMEOUT")),
      connectTimeout: unless(connectTimeout, durationVariable("REDIS_CONNECT_TIMEOUT")),
      client: Config.all({
        username: unless(client?.username ?? username ?? password, Config.String("REDIS_USERNAME")),
        password: unless(client?.password ?? password, Config.map(Config.Redacted("REDIS_PASSWORD"), Redacted.value)),
        db: unless(client?.db ?? db, Config.Int("REDIS_DB")),
        sentinelPassword: unless(
          client?.sentinelPassword,
          Config.map(Config.Redacted("REDIS_SENTINEL_PASSWORD"), Redacted.value)
        )
      })
    })
    return { ...environment, client: { ...defined(environment.client), ...defined({ db, password, username }) } }
  }
)
