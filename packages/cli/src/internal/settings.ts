/** Flags shared by all commands, for connecting and printing, and helpers for defining other flags. */
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import * as IoRedis from "@effect-simba/redis/IoRedis"
import { environmentBeside, partsOf } from "@effect-simba/redis/RedisInternals"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"

/** An optional flag: undefined if it is not passed. */
export const optional = <A>(flag: Flag.Flag<A>, description: string): Flag.Flag<A | undefined> =>
  flag.pipe(Flag.withDescription(description), Flag.optional, Flag.map(Option.getOrUndefined))

/** A flag without a value. */
export const switchFlag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

export const countFlag = (name: string, description: string, count: number) =>
  Flag.Int(name).pipe(
    Flag.withDescription(`${description} (default: ${count})`),
    Flag.filter((value) => value > 0, () => "at least 1"),
    Flag.withDefault(count)
  )

const short = /^(\d+(?:\.\d+)?) ?(ms|s|m|h)$/
const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Accepts `500ms`, `5s`, `2m`, `1h`, and anything that Effect parses, such as `5 seconds`. */
const parseDuration = (text: string): Option.Option<Duration.Duration> => {
  const [, amount, unit] = short.exec(text) ?? []
  return amount === undefined
    ? Duration.fromInput(text as Duration.Input)
    : Option.some(Duration.millis(Number(amount) * units[unit as keyof typeof units]))
}

export const durationFlag = (name: string, description: string) =>
  optional(
    Flag.String(name).pipe(
      Flag.withMetavar("DURATION"),
      Flag.filterMap(parseDuration, () => "a duration such as 500ms, 5s or 2m")
    ),
    description
  )

const parseSentinels = (list: string) =>
  Option.all(
    list.split(",").map((address) =>
      Option.map(
        Option.fromNullOr(/^(?:\[(?<v6>[^\]]+)\]|(?<name>[^:]+)):(?<port>\d+)$/.exec(address)),
        ({ groups }) => ({ host: groups!["v6"] ?? groups!["name"]!, port: Number(groups!["port"]) })
      )
    )
  )

const Url = GlobalFlag.Setting("url")({
  flag: optional(
    Flag.Redacted("url"),
    "Redis address, redis:// or rediss:// (default: REDIS_URL, or redis://localhost:6379)"
  )
})

const Sentinel = GlobalFlag.Setting("sentinel")({
  flag: optional(
    Flag.String("sentinel").pipe(
      Flag.withMetavar("HOST:PORT,..."),
      Flag.filterMap(parseSentinels, () => "host:port, separated by commas")
    ),
    "Sentinels to ask for the primary; needs --master"
  )
})

const Master = GlobalFlag.Setting("master")({
  flag: optional(
    Flag.String("master").pipe(Flag.withMetavar("NAME")),
    "The primary's name in the Sentinel configuration"
  )
})

const Cluster = GlobalFlag.Setting("cluster")({
  flag: switchFlag("cluster", "The address belongs to a Redis Cluster node")
})

export const Json = GlobalFlag.Setting("json")({ flag: switchFlag("json", "Print JSON") })

export const settings = [Url, Sentinel, Master, Cluster, Json] as const

const singleOptions = Effect.gen(function*() {
  const url = yield* Url
  const sentinels = yield* Sentinel
  const name = yield* Master
  if (sentinels === undefined && name === undefined) return { url }
  if (sentinels === undefined || name === undefined) {
    return yield* new InvalidConfig({ option: "--sentinel", problem: "it needs --master, and --master needs it" })
  }
  return { url, client: { sentinels, name } }
})

const clusterOptions = Effect.gen(function*() {
  if ((yield* Sentinel) !== undefined || (yield* Master) !== undefined) {
    return yield* new InvalidConfig({ option: "--cluster", problem: "a Cluster has no Sentinels: remove one of them" })
  }
  const url = yield* Url
  const environment = yield* environmentBeside({ url })
  const { host = "localhost", port = 6379, ...parts } = yield* partsOf(url ?? environment.url)
  const { db: _, sentinelPassword: __, ...client } = { ...parts, ...environment.client }
  return { ...environment, nodes: [{ host, port }], client }
})

/** Connects to the Redis server given by the flags and the environment. */
export const redisWith = (options: Pick<IoRedis.Options, "serverChecks">) =>
  Layer.unwrap(Effect.gen(function*() {
    return (yield* Cluster)
      ? IoRedis.layerCluster({ ...yield* clusterOptions, ...options })
      : IoRedis.layerFromEnv({ ...yield* singleOptions, ...options })
  }))

export const redis = redisWith({})
