/** Which Redis a command speaks to, and how it prints. */
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as IoRedis from "../../IoRedis.ts"
import { environmentBeside } from "../client/ioredis/environment.ts"
import { read } from "../client/ioredis/url.ts"

const Url = GlobalFlag.Setting("url")({
  flag: Flag.Redacted("url").pipe(
    Flag.withDescription("Address of Redis, redis:// or rediss:// (default: REDIS_URL, else redis://localhost:6379)"),
    Flag.optional
  )
})

const Sentinel = GlobalFlag.Setting("sentinel")({
  flag: Flag.String("sentinel").pipe(
    Flag.withMetavar("HOST:PORT,..."),
    Flag.withDescription("Sentinels to ask for the primary; needs --master"),
    Flag.optional
  )
})

const Master = GlobalFlag.Setting("master")({
  flag: Flag.String("master").pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription("The name of the primary at the Sentinels"),
    Flag.optional
  )
})

const Cluster = GlobalFlag.Setting("cluster")({
  flag: Flag.Boolean("cluster").pipe(
    Flag.withDescription("The address is a node of a Redis Cluster"),
    Flag.withDefault(false)
  )
})

export const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
})

export const settings = [Url, Sentinel, Master, Cluster, Json] as const

const sentinelsOf = Effect.fnUntraced(function*(list: string) {
  const sentinels = list.split(",").map((address) =>
    /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]+)):(?<port>\d+)$/.exec(address)
  )
  const found = sentinels.flatMap((match) =>
    match === null ? [] : [{ host: match.groups!["v6"] ?? match.groups!["host"]!, port: Number(match.groups!["port"]) }]
  )
  if (found.length < sentinels.length) {
    return yield* new InvalidConfig({ option: "--sentinel", problem: "expected host:port, and commas between several" })
  }
  return found
})

const sentinelPassword = Config.option(Config.Redacted("REDIS_SENTINEL_PASSWORD"))

const singleOptions = Effect.gen(function*() {
  const url = Option.getOrUndefined(yield* Url)
  const sentinel = yield* Sentinel
  const master = yield* Master
  if (Option.isSome(sentinel) !== Option.isSome(master)) {
    return yield* new InvalidConfig({ option: "--sentinel", problem: "it needs --master, and --master needs it" })
  }
  if (Option.isNone(sentinel) || Option.isNone(master)) return { url }
  const password = yield* sentinelPassword
  return {
    url,
    client: {
      sentinels: yield* sentinelsOf(sentinel.value),
      name: master.value,
      ...(Option.isSome(password) ? { sentinelPassword: Redacted.value(password.value) } : {})
    }
  }
})

const clusterOptions = Effect.gen(function*() {
  const environment = yield* environmentBeside({})
  const url = Option.getOrElse(yield* Url, () => environment.url)
  const { host, port, db: _, ...credentials } = yield* read(Redacted.isRedacted(url) ? Redacted.value(url) : url!)
  const { db: __, ...client } = environment.client ?? {}
  return { ...environment, nodes: [{ host: host!, port: port! }], client: { ...client, ...credentials } }
})

/** The Redis that the flags and the environment name. */
export const redisWith = (options: Pick<IoRedis.Options, "serverChecks">) =>
  Layer.unwrap(Effect.gen(function*() {
    return (yield* Cluster)
      ? IoRedis.layerCluster({ ...yield* clusterOptions, ...options })
      : IoRedis.layerFromEnv({ ...yield* singleOptions, ...options })
  }))

export const redis = redisWith({})

const short = /^(\d+(?:\.\d+)?) ?(ms|s|m|h)$/
const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** `500ms`, `5s`, `2m`, `1h`, and all that Effect reads: `5 seconds`. */
export const parseDuration = (text: string): Duration.Duration => {
  const [, amount, unit] = short.exec(text) ?? []
  if (amount !== undefined) return Duration.millis(Number(amount) * units[unit as keyof typeof units])
  const parsed = Duration.fromInput(text as Duration.Input)
  if (Option.isSome(parsed)) return parsed.value
  throw new Error("expected a duration such as 500ms, 5s or 2m")
}

export const durationFlag = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("DURATION"),
    Flag.withDescription(description),
    Flag.mapTryCatch(parseDuration, (error) => error instanceof Error ? error.message : String(error))
  )
