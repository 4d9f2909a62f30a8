/**
 * The faults that the nemesis injects: into worker processes, into Redis servers, and into the connections between
 * them. `run.ts` draws from them at random.
 */
import { Effect, Fiber } from "effect"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { until } from "../support/harness.ts"
import type { ClusterSetup, RedisServerError, Reply } from "../support/redisServer.ts"
import { moveSlot, ownerOfSlot } from "../support/resharding.ts"
import type { Fleet, Member } from "./fleet.ts"
import { leadership } from "./jobs.ts"
import { mutexes, service } from "./load.ts"
import type { Observer } from "./observer.ts"
import type { Proxy } from "./proxy.ts"
import type { Node, Topology } from "./topology.ts"

/** An injected fault. Times are in milliseconds since the start of the run. */
export interface Fault {
  readonly kind: string
  /** The name of the affected process, or `server`. */
  readonly target: string
  readonly from: number
  to: number
  /** Whether the server may lose acknowledged writes. */
  readonly loses: boolean
  /** Whether the server's state is read again when the fault ends. */
  readonly isRead: boolean
  readonly text: string
}

export interface Stage {
  readonly topology: Topology
  readonly fleet: Fleet
  readonly observer: Observer
  readonly now: () => number
  readonly random: () => number
  readonly faults: Array<Fault>
}

type Act = Effect.Effect<unknown, RedisServerError>
export type FaultKind = readonly [name: string, act: (stage: Stage) => Act]

const between = ({ random }: Stage, low: number, high: number) => low + (high - low) * random()
const pick = <A>({ random }: Stage, items: ReadonlyArray<A>) => items[Math.floor(random() * items.length)]!
const pause = (stage: Stage, low: number, high: number) => Effect.suspend(() => Effect.sleep(between(stage, low, high)))

/** Runs `act` and records the fault's start and end. */
const during = <A, E>(
  stage: Stage,
  fault: Pick<Fault, "kind" | "target"> & {
    readonly loses?: boolean
    readonly isRead?: boolean
    readonly text?: string
  },
  act: Effect.Effect<A, E>
) =>
  Effect.suspend(() => {
    const noted: Fault = { loses: false, isRead: false, text: "", ...fault, from: stage.now(), to: Infinity }
    stage.faults.push(noted)
    return Effect.ensuring(act, Effect.sync(() => void (noted.to = stage.now())))
  })

/** Picks a process with one of these roles that no other fault affects. */
const free = (stage: Stage, roles: ReadonlyArray<Member["role"]>) => {
  const members = stage.fleet.members.filter(({ isTouched, role }) => !isTouched && roles.includes(role))
  return members.length === 0 ? undefined : pick(stage, members)
}

const onMember = (
  kind: string,
  roles: ReadonlyArray<Member["role"]>,
  act: (stage: Stage, member: Member) => Effect.Effect<unknown>
): FaultKind => [kind, (stage) =>
  Effect.suspend(() => {
    const member = free(stage, roles)
    if (member === undefined) return Effect.void
    member.isTouched = true
    return during(stage, { kind, target: member.name }, act(stage, member)).pipe(
      Effect.ensuring(Effect.sync(() => void (member.isTouched = false)))
    )
  })]

const everybody = ["mutex", "consumer", "producer", "jobs"] as const
/** Producers are never killed: a restarted one would start over with its first message. */
const mortal = ["mutex", "consumer", "jobs"] as const

export const ofProcesses: ReadonlyArray<FaultKind> = [
  onMember("kill", mortal, (stage, member) =>
    Effect.gen(function*() {
      stage.fleet.kill(member)
      yield* pause(stage, 100, 3000)
      stage.fleet.restart(member)
      // Give the process time to start and connect
      yield* Effect.sleep("1 second")
    })),
  onMember("stop", everybody, (stage, member) =>
    Effect.gen(function*() {
      member.child.kill("SIGSTOP")
      yield* pause(stage, 500, 7000)
      member.child.kill("SIGCONT")
    })),
  onMember("block", everybody, (stage, member) =>
    Effect.gen(function*() {
      const millis = between(stage, 200, 6000)
      stage.fleet.order(member, { _tag: "Block", millis })
      yield* Effect.sleep(millis)
    }))
]

/** Returns the jobs' current leader, unless another fault already affects it. */
const leader = (stage: Stage) =>
  Effect.gen(function*() {
    const key = `simba:{${leadership}}`
    const { server } = yield* stage.topology.primaryOf(key)
    const id = String(yield* server.send("GET", key))
    return stage.fleet.members.find(({ isTouched, name }) => !isTouched && id.includes(`:${name}.`))
  }).pipe(Effect.orElseSucceed(() => undefined))

const onLeader = (
  kind: string,
  before: Effect.Effect<unknown>,
  act: (stage: Stage, member: Member) => Effect.Effect<unknown>
): FaultKind => [kind, (stage) =>
  Effect.gen(function*() {
    yield* before
    const member = yield* leader(stage)
    if (member === undefined) return
    member.isTouched = true
    yield* during(stage, { kind, target: member.name }, act(stage, member)).pipe(
      Effect.ensuring(Effect.sync(() => void (member.isTouched = false)))
    )
  })]

/** Waits until a few milliseconds before a whole second of the wall clock, which the server shares. */
const boundary = Effect.suspend(() => Effect.sleep(1000 - (Date.now() + 5) % 1000))

/** Hits the jobs' leader when it is most vulnerable: at a job's instant, or for longer than its lease. */
const ofLeaders: ReadonlyArray<FaultKind> = [
  onLeader("kill at an instant", boundary, (stage, member) =>
    Effect.gen(function*() {
      yield* pause(stage, 0, 20)
      stage.fleet.kill(member)
      yield* pause(stage, 100, 3000)
      stage.fleet.restart(member)
      yield* Effect.sleep("1 second")
    })),
  onLeader("stop beyond the lease", Effect.void, (stage, member) =>
    Effect.gen(function*() {
      member.child.kill("SIGSTOP")
      // Longer than the 4.5-second lease
      yield* pause(stage, 5000, 9000)
      member.child.kill("SIGCONT")
    }))
]

const proxied = (kind: string, change: (stage: Stage, proxy: Proxy) => void, high: number): FaultKind => [
  kind,
  (stage) => {
    const { name, proxy } = pick(stage, stage.topology.nodes)
    return during(
      stage,
      { kind, target: "server", text: name },
      Effect.gen(function*() {
        change(stage, proxy)
        yield* pause(stage, 100, high)
        proxy.held = "none"
        proxy.delay = 0
        proxy.refuses = false
        if (stage.random() < 0.5) proxy.cut()
      })
    )
  }
]

export const ofNetwork: ReadonlyArray<FaultKind> = [
  proxied("cut", (_, proxy) => proxy.cut(), 200),
  proxied("slow", (stage, proxy) => void (proxy.delay = between(stage, 5, 300)), 4000),
  proxied("requests held", (_, proxy) => void (proxy.held = "requests"), 5000),
  proxied("replies held", (_, proxy) => void (proxy.held = "replies"), 5000),
  proxied("half open", (_, proxy) => void (proxy.held = "both"), 5000),
  proxied("refused", (_, proxy) => {
    proxy.refuses = true
    proxy.cut()
  }, 3000)
]

const onPrimary = (kind: string, act: (stage: Stage, node: Node) => Act, isRead = false, loses = false): FaultKind => [
  kind,
  (stage) =>
    Effect.gen(function*() {
      const key = pick(stage, [`simba:{${pick(stage, mutexes)}}`, `${service}-input`])
      const node = yield* stage.topology.primaryOf(key)
      yield* during(stage, { kind, target: "server", text: node.name, isRead, loses }, act(stage, node))
    })
]

/**
 * Runs `act` while clients are cut off. The observer restarts MONITOR and rereads the keys before they can reconnect.
 */
const watched = (stage: Stage, { name, proxy, server }: Node, act: Act) =>
  Effect.gen(function*() {
    proxy.refuses = true
    proxy.cut()
    yield* act
    yield* stage.observer.listen(name, server)
    yield* stage.observer.read(server)
  }).pipe(Effect.ensuring(Effect.sync(() => void (proxy.refuses = false))))

const folderOf = (reply: Reply) => String((reply as ReadonlyArray<Reply>)[1])

const clientsOf = (reply: Reply) =>
  String(reply).split("\n").flatMap((line) => {
    const fields = new Map(line.split(" ").map((field) => field.split("=") as [string, string]))
    const isOwn = /^[NPb]+$/.test(fields.get("flags") ?? "") && fields.get("cmd") !== "client|list"
    return isOwn ? [fields.get("id")!] : []
  })

/**
 * `limit` is the longest pause in milliseconds. It is too short for sentinels to start a failover, which is a separate
 * fault.
 */
const ofServers = (limit: number): ReadonlyArray<FaultKind> => [
  onPrimary("server stopped", (stage, { server }) =>
    Effect.gen(function*() {
      yield* server.pause
      yield* pause(stage, 50, limit)
      yield* server.resume
    })),
  onPrimary("connections killed", (stage, { server }) =>
    Effect.gen(function*() {
      for (const id of clientsOf(yield* server.send("CLIENT", "LIST"))) {
        if (stage.random() < 0.5) yield* Effect.ignore(server.send("CLIENT", "KILL", "ID", id))
      }
    })),
  onPrimary("clients paused", (stage, { server }) =>
    Effect.gen(function*() {
      const millis = Math.round(between(stage, 50, limit))
      yield* server.send("CLIENT", "PAUSE", String(millis), pick(stage, ["WRITE", "ALL"]))
      yield* Effect.sleep(millis)
    })),
  onPrimary("scripts flushed", (_, { server }) => server.send("SCRIPT", "FLUSH")),
  onPrimary("busy script", (stage, { server }) => {
    // After `busy-reply-threshold`, 100 ms, the server replies BUSY to other commands
    const lua = "for i = 1, 1e12 do end"
    return Effect.gen(function*() {
      const busy = yield* Effect.forkChild(Effect.ignore(server.send("EVAL", lua, "0")))
      yield* pause(stage, 150, limit)
      yield* until("the script is killed", Effect.isSuccess(server.send("SCRIPT", "KILL")))
      yield* Fiber.join(busy)
    })
  }),
  onPrimary("out of memory", (stage, { server }) =>
    Effect.gen(function*() {
      yield* server.send("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1mb")
      yield* pause(stage, 200, 3000)
    }).pipe(Effect.ensuring(Effect.orDie(server.send("CONFIG", "SET", "maxmemory", "0")))))
]

const killed = onPrimary("server killed", (stage, node) =>
  watched(
    stage,
    node,
    Effect.gen(function*() {
      yield* node.server.kill()
      yield* pause(stage, 50, 3000)
      yield* node.server.restart
      if (stage.topology.kind === "cluster") {
        for (const { server } of stage.topology.nodes.slice(0, 3)) {
          yield* until(
            "all the cluster's slots are served",
            Effect.map(server.send("CLUSTER", "INFO"), (info) => String(info).includes("cluster_state:ok"))
          )
        }
      }
    })
  ), true)

const erased = onPrimary(
  "server erased",
  (stage, node) =>
    watched(
      stage,
      node,
      Effect.gen(function*() {
        const folder = folderOf(yield* node.server.send("CONFIG", "GET", "dir"))
        yield* node.server.kill()
        yield* Effect.promise(() => rm(join(folder, "appendonlydir"), { recursive: true, force: true }))
        yield* pause(stage, 50, 3000)
        yield* node.server.restart
      })
    ),
  true,
  true
)

const hasRole = (node: Node, role: string) =>
  Effect.map(node.server.send("INFO", "replication"), (info) => String(info).includes(`role:${role}`))

/** Waits until both nodes agree on their new roles, then rereads the new primary's data. */
const failedOver = (stage: Stage, before: Node) =>
  Effect.gen(function*() {
    const { nodes, primaryOf } = stage.topology
    const next = nodes.find((node) => node !== before)!
    yield* until("a new primary", Effect.map(primaryOf(""), (primary) => primary === next))
    yield* until(
      "the old primary is a replica",
      Effect.all([hasRole(before, "slave"), hasRole(next, "master")]).pipe(
        Effect.map(([a, b]) => a && b)
      )
    )
    yield* until(
      "the old primary is in sync",
      Effect.map(before.server.send("INFO", "replication"), (info) => String(info).includes("master_link_status:up"))
    )
    // Sentinels close all connections to a server that they promote or demote
    for (const { name, server } of nodes) yield* stage.observer.listen(name, server)
    yield* stage.observer.read(next.server)
  })

const failovers: ReadonlyArray<FaultKind> = [
  onPrimary(
    "failover",
    (stage, node) =>
      Effect.gen(function*() {
        const { primaryOf, sentinels } = stage.topology
        const isDone = Effect.map(primaryOf(""), (primary) => primary !== node)
        // A Sentinel abandons a failover if a node does not respond within the failover timeout, and does not retry
        const request = Effect.gen(function*() {
          if (yield* isDone) return true
          yield* sentinels[0]!.send("SENTINEL", "FAILOVER", "mymaster")
          return yield* Effect.repeat(Effect.delay(isDone, "50 millis"), { until: (done) => done, times: 100 })
        })
        yield* until("a failover", request)
        yield* failedOver(stage, node)
      }),
    true,
    true
  ),
  onPrimary(
    "primary killed",
    (stage, node) =>
      Effect.gen(function*() {
        yield* node.server.kill()
        yield* until("a new primary", Effect.map(stage.topology.primaryOf(""), (primary) => primary !== node))
        yield* node.server.restart
        yield* failedOver(stage, node)
      }),
    true,
    true
  ),
  onPrimary(
    "primary stopped",
    (stage, node) =>
      Effect.gen(function*() {
        yield* node.server.pause
        yield* until("a new primary", Effect.map(stage.topology.primaryOf(""), (primary) => primary !== node))
        yield* node.server.resume
        yield* failedOver(stage, node)
      }),
    true,
    true
  )
]

const move = (stage: Stage, members: ReadonlyArray<Node>, slot: number, to: Node) =>
  Effect.gen(function*() {
    const setup: ClusterSetup = { nodes: members.map(({ server }) => server) }
    const owner = yield* ownerOfSlot(setup, slot)
    if (owner !== to.server) yield* moveSlot(setup, slot, to.server, pause(stage, 10, 300))
  })

const slotOf = (stage: Stage) => {
  const tag = pick(stage, [...mutexes.map((name) => `{${name}}`), `{${leadership}}`, service])
  return Effect.map(stage.topology.nodes[0]!.server.send("CLUSTER", "KEYSLOT", tag), Number)
}

const knowsAll = (node: Node, count: number) =>
  Effect.map(
    node.server.send("CLUSTER", "INFO"),
    (info) => String(info).includes(`cluster_known_nodes:${count}`) && String(info).includes("cluster_state:ok")
  )

const ofCluster: ReadonlyArray<FaultKind> = [
  ["slot moved", (stage) =>
    Effect.gen(function*() {
      const slot = yield* slotOf(stage)
      const members = stage.topology.nodes.slice(0, 3)
      const to = pick(stage, members)
      yield* during(stage, { kind: "slot moved", target: "server", text: to.name }, move(stage, members, slot, to))
    })],
  ["node added and removed", (stage) =>
    Effect.gen(function*() {
      const { nodes } = stage.topology
      const [first, , , spare] = nodes
      const slot = yield* slotOf(stage)
      yield* during(
        stage,
        { kind: "node added and removed", target: "server", text: spare!.name },
        Effect.gen(function*() {
          yield* spare!.server.send("CLUSTER", "MEET", "127.0.0.1", String(first!.server.port))
          for (const node of nodes) yield* until("all nodes know the new node", knowsAll(node, 4))
          yield* move(stage, nodes, slot, spare!)
          yield* pause(stage, 500, 3000)
          yield* move(stage, nodes, slot, pick(stage, nodes.slice(0, 3)))
          const id = String(yield* spare!.server.send("CLUSTER", "MYID"))
          for (const node of nodes.slice(0, 3)) yield* node.server.send("CLUSTER", "FORGET", id)
          // Take a new id: the other nodes ban the old one for a minute
          yield* spare!.server.send("CLUSTER", "RESET", "HARD")
        })
      )
    })]
]

/**
 * The faults for a topology. `run.ts` injects server faults one at a time, so that each begins and ends with a working
 * topology.
 */
export const faultsOf = (kind: Topology["kind"], hasOnlyJobs: boolean) => ({
  processes: hasOnlyJobs ? [...ofProcesses, ...ofLeaders, ...ofLeaders] : ofProcesses,
  servers: kind === "single"
    ? [...ofNetwork, ...ofServers(2500), killed, erased]
    : kind === "sentinel"
    ? [...ofNetwork, ...ofServers(600), ...failovers]
    : [...ofNetwork, ...ofServers(2500), ...ofCluster, ...ofCluster, killed]
})
