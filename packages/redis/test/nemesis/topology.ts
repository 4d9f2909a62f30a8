/** Starts Redis servers in one of three topologies, with a proxy in front of each node. */
import type { IoRedis } from "@effect-simba/redis"
import { Effect, type Scope } from "effect"
import { RedisServer, type RedisServerError, type Server } from "../support/redisServer.ts"
import { type Proxy, proxyTo } from "./proxy.ts"

export interface Node {
  readonly name: string
  readonly server: Server
  readonly proxy: Proxy
}

/** The connection options of a worker process. */
export type Connection =
  | { readonly _tag: "Single"; readonly options: IoRedis.Options }
  | { readonly _tag: "Cluster"; readonly options: IoRedis.ClusterOptions }

export interface Topology {
  readonly kind: "single" | "sentinel" | "cluster"
  readonly nodes: ReadonlyArray<Node>
  readonly connection: Connection
  /** Returns the node that currently accepts writes to this key. */
  readonly primaryOf: (key: string) => Effect.Effect<Node, RedisServerError>
  readonly sentinels: ReadonlyArray<Server>
}

export const kinds = ["single", "sentinel", "cluster"] as const

/** A killed server does not lose acknowledged writes: the operating system already has them in its file cache. */
const args = [
  "--appendonly yes",
  "--appendfsync everysec",
  "--auto-aof-rewrite-percentage 0",
  "--busy-reply-threshold 100",
  "--enable-debug-command yes"
]

/** Keeps a node without slots from becoming a replica. */
const clusterArgs = ["--cluster-allow-replica-migration no", ...args]

const commandTimeout = "500 millis"

const behind = (name: string, server: Server) =>
  Effect.map(proxyTo(server.port), (proxy): Node => ({ name, server, proxy }))

const natMap = (nodes: ReadonlyArray<Node>) =>
  Object.fromEntries(
    nodes.map(({ proxy, server }) => [`127.0.0.1:${server.port}`, { host: "127.0.0.1", port: proxy.port }])
  )

const single = Effect.gen(function*() {
  const node = yield* behind("server", yield* RedisServer.start({ args }))
  const options = { url: `redis://127.0.0.1:${node.proxy.port}`, commandTimeout } as const
  return {
    kind: "single",
    nodes: [node],
    connection: { _tag: "Single", options },
    primaryOf: () => Effect.succeed(node),
    sentinels: []
  } satisfies Topology as Topology
})

const sentinel = Effect.gen(function*() {
  const setup = yield* RedisServer.sentinel({ args, downAfter: 3000 })
  const nodes = [yield* behind("one", setup.primary), yield* behind("two", setup.replica)]
  const client = {
    sentinels: setup.sentinels.map(({ port }) => ({ host: "127.0.0.1", port })),
    name: setup.name,
    natMap: natMap(nodes)
  }
  return {
    kind: "sentinel",
    nodes,
    connection: { _tag: "Single", options: { client, commandTimeout } },
    primaryOf: () =>
      Effect.map(setup.primaryPort, (port) => nodes.find(({ server }) => server.port === port) ?? nodes[0]!),
    sentinels: setup.sentinels
  } satisfies Topology as Topology
})

/** Three nodes that share the slots, and a spare fourth node that a fault adds and removes. */
const cluster = Effect.gen(function*() {
  const setup = yield* RedisServer.cluster({ args: clusterArgs })
  const spare = yield* RedisServer.start({
    args: ["--cluster-enabled yes", "--cluster-node-timeout 1000", "--cluster-announce-ip 127.0.0.1", ...clusterArgs]
  })
  const nodes: Array<Node> = []
  for (const [index, server] of [...setup.nodes, spare].entries()) nodes.push(yield* behind(`n${index + 1}`, server))
  const options = {
    nodes: nodes.slice(0, 3).map(({ proxy }) => ({ host: "127.0.0.1", port: proxy.port })),
    cluster: { natMap: natMap(nodes) },
    commandTimeout
  } as const
  return {
    kind: "cluster",
    nodes,
    connection: { _tag: "Cluster", options },
    primaryOf: (key) =>
      Effect.gen(function*() {
        for (const node of nodes) {
          if (yield* Effect.isSuccess(node.server.send("EXISTS", key))) return node
        }
        return nodes[0]!
      }),
    sentinels: []
  } satisfies Topology as Topology
})

export const startTopology = (
  kind: Topology["kind"]
): Effect.Effect<Topology, RedisServerError, Scope.Scope> =>
  kind === "single" ? single : kind === "sentinel" ? sentinel : cluster
