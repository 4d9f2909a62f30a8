/**
 * Checks whether a Redis server is set up for this library, and suggests what to change.
 *
 * @since 0.1.0
 */
import type { BackendError } from "@effect-simba/core/SimbaError"
import type { ServiceName } from "@effect-simba/core/streams/StreamStore"
import { Subscriber } from "@effect-simba/core/Subscriber"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import { type Command, mutexCommands, streamCommands } from "./internal/client/doctorCommands.ts"
import * as Redis from "./internal/client/effectRedis.ts"
import { scan } from "./internal/client/scan.ts"
import * as checks from "./internal/client/serverChecks.ts"
import { inboxChannel } from "./internal/mutex/keys.ts"
import { RedisTopology } from "./RedisTopology.ts"
import * as keys from "./streams/internal/keys.ts"

/**
 * All findings, grouped by primary on a Cluster.
 *
 * @category models
 * @since 0.1.0
 */
export interface Report {
  /** True if no finding has the status `error`. */
  readonly isUsable: boolean
  /** True if no finding has the status `error` or `warning`. */
  readonly isHealthy: boolean
  readonly findings: ReadonlyArray<{
    /**
     * The name of the check: `node` (its address; Cluster only), `version`, `mode`, `role`, `eviction`, `connections`,
     * `persistence`, `coverage` (Cluster only), `keyspaceEvents`, `jobs` (paused jobs), `clock`, `latency`, `commands`,
     * `permissions`, `writes`, `pauses` or `messages`. If a server does not reply, its only finding is `connection`.
     */
    readonly check: string
    /**
     * `info`: worth knowing. `warning`: this library works, but a guarantee may break. `error`: this library does not
     * work.
     */
    readonly status: "ok" | "info" | "warning" | "error"
    readonly message: string
    /** What to do about the finding; undefined if nothing needs to be done. */
    readonly advice?: string | undefined
  }>
}

type Finding = Report["findings"][number]

type Options = {
  /**
   * Whether to check the keyspace events and permissions that data streams need, and to list paused services. Default:
   * `false`.
   */
  readonly streams?: boolean | undefined
  /** The number of pings. The slowest one determines the status of `latency`. Default: 20. */
  readonly pings?: number | undefined
}

type Send = Redis.Redis["Service"]["send"]

const { finding } = checks

const causeOf = ({ cause }: Redis.RedisError | BackendError) => cause instanceof Error ? cause.message : String(cause)

const latency = Effect.fnUntraced(function*(send: Send, pings: number) {
  const times: Array<number> = []
  for (let i = 0; i < pings; i++) {
    const [took] = yield* Effect.timed(send("PING"))
    times.push(Duration.toMillis(took))
  }
  times.sort((a, b) => a - b)
  const [median, longest] = [times[Math.floor(times.length / 2)], times.at(-1)]
  const text = `round trip: median ${median?.toFixed(1)} ms, maximum ${longest?.toFixed(1)} ms of ${times.length} pings`
  if (longest === undefined || longest <= 250) return finding("latency", "ok", text)
  const advice = "check for slow commands (SLOWLOG GET), a busy server or a slow network, or use longer leases"
  return finding("latency", "warning", text, advice)
})

/** Compares the server's clock with the local one, accurate to half a round trip. */
const clock = Effect.fnUntraced(function*(send: Send) {
  const before = yield* Clock.currentTimeMillis
  const [seconds, micros] = yield* send<readonly [string, string]>("TIME")
  const after = yield* Clock.currentTimeMillis
  const ahead = Math.round(Number(seconds) * 1000 + Number(micros) / 1000 - (before + after) / 2)
  const text = `the server's clock is ${Math.abs(ahead)} ms ${ahead < 0 ? "behind" : "ahead of"} the local one`
  if (Math.abs(ahead) <= 1000) return finding("clock", "ok", text)
  const advice = "synchronize both with NTP: once-per-period jobs and token times follow the server's clock"
  return finding("clock", "warning", text, advice)
})

/** Names the Cluster node that the next findings are about. */
const node = (send: Send) =>
  Effect.match(send<string>("CLUSTER", "NODES"), {
    onFailure: () => finding("node", "info", "this node's address cannot be read"),
    onSuccess: (nodes) => finding("node", "ok", /(\S*)@\S* myself/.exec(nodes)?.[1] ?? "unknown")
  })

/** Checks that each slot has a primary, and that a primary keeps working while another is down. */
const coverage = Effect.fnUntraced(function*(send: Send) {
  const ranges = yield* send<ReadonlyArray<readonly [first: number, last: number]>>("CLUSTER", "SLOTS")
  const unserved = ranges.reduce((left, [first, last]) => left - last + first - 1, 16_384)
  if (unserved > 0) {
    return finding("coverage", "error", `no node serves ${unserved} slot(s)`, "run redis-cli --cluster fix")
  }
  const value = yield* checks.setting(send, "cluster-require-full-coverage")
  if (value === undefined) return finding("coverage", "info", "cluster-require-full-coverage cannot be read")
  if (value === "no") return finding("coverage", "ok", "a primary keeps working while another is down")
  const problem = "while one primary is down, all others refuse commands, so every lease may expire"
  return finding("coverage", "warning", problem, "set cluster-require-full-coverage no")
})

const jobKeys = ["MATCH", "simba:{*}:jobs", "TYPE", "hash"]

/** Lists paused jobs, in case an operator forgot to resume them. */
const pausedJobs = (send: Send) =>
  scan("list jobs", { send } as Redis.Redis["Service"], { _tag: "Single" }, ...jobKeys).pipe(
    Stream.mapEffect((key) =>
      Effect.map(send<ReadonlyArray<string>>("HKEYS", key), (fields) => {
        const mutex = key.slice("simba:{".length, -"}:jobs".length)
        return fields.flatMap((field) =>
          field === "paused"
            ? [mutex]
            : field.startsWith("paused:")
            ? [`${mutex}/${field.slice("paused:".length)}`]
            : []
        )
      })
    ),
    Stream.runCollect,
    Effect.map((found) => found.flat().sort()),
    // A permission is missing, and another finding reports it
    Effect.orElseSucceed((): ReadonlyArray<string> => []),
    Effect.map((paused) =>
      paused.length === 0
        ? finding("jobs", "ok", "no jobs are paused")
        : finding("jobs", "info", `paused: ${paused.join(", ")}`, "effect-simba jobs resume NAME [JOB] ends a pause")
    )
  )

/** Redis-compatible servers may lack commands or options, and `rename-command` may have removed some. */
const known = (sent: ReadonlyArray<Command>, replies: ReadonlyArray<string>): Finding => {
  const unknown = sent.flatMap((command, index) => {
    const reply = replies[index]!
    return /unknown command/i.test(reply)
      ? [command[0]]
      : /unknown subcommand|syntax error|invalid stream id/i.test(reply)
      ? [command.join(" ")]
      : []
  })
  if (unknown.length === 0) return finding("commands", "ok", "the server knows all commands")
  const problem = `the server does not know ${[...new Set(unknown)].join(", ")}`
  return finding("commands", "error", problem, "use a server that has these commands")
}

const permissions = (replies: ReadonlyArray<string>) => {
  const refusals = replies.filter((text) => text.includes("NOPERM"))
  if (refusals.length === 0) return finding("permissions", "ok", "all commands are permitted")
  // The command names are enough
  const refused = new Set(refusals.map((text) => /'\S+'(?= command)/.exec(text)?.[0] ?? text))
  const advice = "grant them with ACL SETUSER: the operations guide has the command"
  return finding("permissions", "error", `refused: ${[...refused].join(", ")}`, advice)
}

/** Remedies, by error code. */
const writeCures = {
  OOM: "free memory or raise maxmemory",
  MISCONF: "let the server save to its disk: its log says why it cannot",
  NOREPLICAS: "restore the replicas, or lower min-replicas-to-write",
  READONLY: "connect to the primary"
}

const writes = (replies: ReadonlyArray<string>): Finding => {
  for (const [code, cure] of Object.entries(writeCures)) {
    const refusal = replies.find((text) => text.includes(code))
    if (refusal !== undefined) return finding("writes", "error", `the server refuses writes: ${refusal}`, cure)
  }
  return finding("writes", "ok", "the server accepts writes")
}

/** Checks that messages arrive on the channels for waiters and observers. */
const messages = (send: Send, subscriber: Subscriber["Service"], channels: ReadonlyArray<string>) =>
  Effect.flatMap(
    Effect.forEach(channels, (channel) => Effect.map(subscriber.subscribe(channel), (queue) => ({ channel, queue }))),
    Effect.forEach(({ channel, queue }) =>
      Effect.timed(Effect.andThen(send("PUBLISH", channel, "doctor"), Queue.take(queue)))
    )
  ).pipe(
    Effect.scoped,
    Effect.timeout("2 seconds"),
    Effect.match({
      onSuccess: (times) => {
        const longest = Math.max(...times.map(([took]) => Duration.toMillis(took)))
        return finding("messages", "ok", `messages arrive within ${longest.toFixed(1)} ms`)
      },
      onFailure: (error) => {
        const text = error._tag === "TimeoutError" ? error.message : causeOf(error)
        return text.includes("NOPERM")
          ? finding(
            "messages",
            "error",
            `a layer cannot be built: ${text}`,
            "permit SUBSCRIBE and the channels simba:*"
          )
          : finding(
            "messages",
            "warning",
            `messages do not arrive: ${text}`,
            "allow pub/sub messages between client and server: until then each hand-off may take as long as a lease"
          )
      }
    })
  )

const unreachable = (error: Redis.RedisError): ReadonlyArray<Finding> => [
  finding("connection", "error", causeOf(error), "the server must reply to INFO, TIME and PING")
]

const examineServer = Effect.fnUntraced(function*(send: Send, isCluster: boolean, { pings, streams }: Options) {
  const info = checks.fieldsOf(yield* send<string>("INFO"))
  const received = checks.ofInfo(info, isCluster, yield* checks.setting(send, "save"))
  const isUsable = received.every(({ status }) => status !== "error")
  return [
    ...(isCluster ? [yield* node(send)] : []),
    ...received,
    ...(isCluster ? [yield* coverage(send)] : []),
    // On a Cluster, consumers do not use keyspace events, because each node publishes events only for its own keys
    ...(streams === true && !isCluster
      ? [checks.keyspaceEvents(yield* checks.setting(send, checks.eventsSetting))]
      : []),
    ...(isUsable ? [yield* pausedJobs(send)] : []),
    // A Sentinel refuses TIME, but the `mode` finding already reports it
    ...yield* Effect.all([clock(send), latency(send, pings ?? 20)]).pipe(
      Effect.catch((error) => isUsable ? Effect.fail(error) : Effect.succeed([]))
    )
  ]
})

const pausedKeys = keys.paused("" as ServiceName).slice(0, -keys.input("" as ServiceName).length)

/** Lists services that an operator has paused. */
const pauses = (redis: Redis.Redis["Service"], topology: RedisTopology) =>
  Stream.runCollect(scan("list pauses", redis, topology, "MATCH", `${pausedKeys}*-input`)).pipe(
    Effect.flatMap((found) =>
      Effect.forEach(new Set(found), (key) =>
        Effect.map(redis.send<ReadonlyArray<string>>("HKEYS", key), (names) => {
          const service = key.slice(pausedKeys.length, -keys.input("" as ServiceName).length)
          return `${service} (${names.includes("") ? "all" : `${names.length} data stream(s)`})`
        }))
    ),
    Effect.match({
      onFailure: () => finding("pauses", "info", "cannot read the pauses"),
      onSuccess: (paused) =>
        paused.length === 0
          ? finding("pauses", "ok", "no services are paused")
          : finding(
            "pauses",
            "info",
            `paused: ${paused.join(", ")}`,
            "effect-simba streams resume SERVICE ends a pause"
          )
    })
  )

/**
 * Checks the server behind the current `Redis`, or each primary of the Cluster.
 *
 * **Details**
 *
 * Writes only to keys that begin with `simba:{doctor-`, and removes them. With a `Subscriber`, it also publishes
 * messages and checks that they arrive. It never fails: a server that does not reply is reported as a finding.
 *
 * **Example** (Printing what to change)
 *
 * ```ts
 * import { IoRedis, RedisDoctor } from "@effect-simba/redis"
 * import { Console, Effect } from "effect"
 *
 * const program = RedisDoctor.examine({ streams: true }).pipe(
 *   Effect.flatMap((report) => Console.log(RedisDoctor.format(report))),
 *   Effect.provide(IoRedis.layer({ url: "redis://localhost:6379", serverChecks: false }))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const examine = Effect.fnUntraced(function*(
  options: Options = {}
): Effect.fn.Return<Report, never, Redis.Redis> {
  const redis = yield* Redis.Redis
  const { send } = redis
  const subscriber = yield* Effect.serviceOption(Subscriber)
  const topology = yield* RedisTopology
  const isCluster = topology._tag === "Cluster"
  const id = (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36)
  const key = `simba:{doctor-${id}}`
  const servers = isCluster ? yield* topology.primaries : [send]
  const findings = (yield* Effect.forEach(
    servers,
    (server) => Effect.catch(examineServer(server, isCluster, options), (error) => Effect.succeed(unreachable(error)))
  )).flat()
  if (findings.every(({ check, status }) => status !== "error" || check === "version")) {
    const inbox = inboxChannel(`doctor-${id}`)
    // Check this before any write: when a replica refuses a write, the connection closes
    const reads = [
      ...(options.streams === true ? [yield* pauses(redis, topology)] : []),
      ...(Option.isSome(subscriber) ? [yield* messages(send, subscriber.value, [inbox, key])] : [])
    ]
    const commands = [...mutexCommands(key, inbox), ...(options.streams === true ? streamCommands(`${key}:input`) : [])]
    const replies = yield* Effect.forEach(
      commands,
      (command) => Effect.match(send(...command), { onFailure: causeOf, onSuccess: () => "" })
    )
    findings.push(known(commands, replies), permissions(replies), writes(replies), ...reads)
  }
  return {
    findings,
    isUsable: findings.every(({ status }) => status !== "error"),
    isHealthy: findings.every(({ status }) => status === "ok" || status === "info")
  }
})

/**
 * Formats a report as text, with one line per finding.
 *
 * **Example** (Only findings that need action)
 *
 * ```ts
 * import { RedisDoctor } from "@effect-simba/redis"
 * import { Console, Effect } from "effect"
 *
 * const complaints = Effect.flatMap(RedisDoctor.examine(), (report) =>
 *   Console.log(RedisDoctor.format({
 *     ...report,
 *     findings: report.findings.filter(({ status }) => status === "warning" || status === "error")
 *   })))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const format = ({ findings }: Report): string =>
  findings.map((finding) => `${finding.status.padEnd(7)}  ${finding.check.padEnd(14)}  ${checks.textOf(finding)}`)
    .join("\n")
