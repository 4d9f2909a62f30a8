/** The options of a connection that the environment gives. */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Options } from "../../../IoRedis.ts"

const unless = <A>(given: unknown, variable: Config.Config<A>): Config.Config<A | undefined> =>
  given === undefined ? variable : Config.succeed(undefined)

/** What is given in code is not read: its variable may be unreadable. */
export const environmentBeside = ({ client, commandTimeout, connectTimeout, url }: Options): Config.Config<Options> =>
  Config.all({
    url: unless(
      url,
      Config.Redacted("REDIS_URL").pipe(Config.withDefault(Redacted.make("redis://localhost:6379")))
    ),
    username: unless(client?.username, Config.option(Config.String("REDIS_USERNAME"))),
    password: unless(client?.password, Config.option(Config.Redacted("REDIS_PASSWORD"))),
    db: unless(client?.db, Config.option(Config.Int("REDIS_DB"))),
    commandTimeout: unless(
      commandTimeout,
      Config.Duration("REDIS_COMMAND_TIMEOUT").pipe(Config.withDefault(Duration.seconds(1)))
    ),
    connectTimeout: unless(
      connectTimeout,
      Config.Duration("REDIS_CONNECT_TIMEOUT").pipe(Config.withDefault(Duration.seconds(2)))
    )
  }).pipe(Config.map(({ commandTimeout, connectTimeout, db, password, url, username }) => ({
    url,
    commandTimeout,
    connectTimeout,
    client: {
      ...(username !== undefined && Option.isSome(username) ? { username: username.value } : {}),
      ...(password !== undefined && Option.isSome(password) ? { password: Redacted.value(password.value) } : {}),
      ...(db !== undefined && Option.isSome(db) ? { db: db.value } : {})
    }
  })))
