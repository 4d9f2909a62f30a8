/**
 * Provides what every workload needs: a server, the contestants' processes, and rounds in which the contestants take
 * turns.
 */
import { Cause, Effect, Exit, Scope } from "effect"
import { Redis } from "ioredis"
import { RedisServer, type Server } from "../../packages/redis/test/support/redisServer.ts"
import { installed } from "../peers/install.ts"
import { type Peer, peers } from "../peers/table.ts"
import { type Agent, type AgentError, start } from "./agent.ts"
import type { Connect } from "./contestant.ts"
import type { Row } from "./row.ts"

/** A participant in a comparison. */
export interface Entrant {
  readonly name: string
  readonly role: "ours" | "raw" | "variant" | "peer"
  /** The contestant whose process runs the entrant. */
  readonly contestant: string
  readonly setting: Connect["setting"]
  /** How the entrant acquires and releases: `usual`, or an alternative such as `withLock`. */
  readonly variant: string
  readonly localTurn?: number | undefined
  readonly protocol: Connect["protocol"]
  /** The commit's worktree, if commits are compared. */
  readonly root?: string
}

const entrant = (name: string, role: Entrant["role"], contestant: string, rest: Partial<Entrant> = {}): Entrant => ({
  name,
  role,
  contestant,
  setting: "default",
  variant: "usual",
  protocol: "direct",
  ...rest
})

export const ours = entrant("ours", "ours", "ours")
export const raw = entrant("raw", "raw", "raw")
export const variantOf = (of: Entrant, name: string, rest: Partial<Entrant>): Entrant => ({
  ...of,
  name,
  role: "variant",
  ...rest
})

/** The number and length of the repetitions. A quick run gives a first impression; a full run is published. */
export interface Pace {
  readonly isQuick: boolean
  readonly repetitions: number
  readonly millis: number
}

/**
 * The pace for workloads that yield hundreds of samples in a fraction of a second: many short turns, so other load on
 * the machine affects all contestants equally.
 */
export const brief = ({ repetitions }: Pace) => ({ millis: 200, repetitions: 4 * repetitions, repetitionsOfPeers: 6 })

export interface Outcome<A> {
  readonly entrant: Entrant
  readonly samples: ReadonlyArray<A>
  /** Why samples are missing. */
  readonly failure: string | undefined
}

export interface Bench {
  readonly pace: Pace
  readonly server: Server
  readonly admin: Redis
  /**
   * All entrants in the order of the tables: effect-simba, raw, then each peer with default and with fastest settings.
   */
  readonly everybody: ReadonlyArray<Entrant>
  /** effect-simba, raw, and the three peers that were fastest in the last full run, each with its better setting. */
  readonly closest: ReadonlyArray<Entrant>
  /** Peers that could not be installed, with the reason. */
  readonly missing: ReadonlyArray<Outcome<never>>
  readonly note: (line: string) => Effect.Effect<void>
  /**
   * Returns an entrant's process, connected to the server or to the proxy in front of it. `number` selects one of the
   * entrant's processes.
   */
  readonly agent: (entrant: Entrant, connect?: Partial<Connect>, number?: number) => Effect.Effect<Agent, AgentError>
  /** Disconnects all agents. Call it before their servers and proxies stop. */
  readonly disconnectAll: Effect.Effect<void>
  /** Starts a process for a single use. */
  readonly freshAgent: (
    entrant: Entrant,
    connect?: Partial<Connect>
  ) => Effect.Effect<Agent, AgentError, Scope.Scope>
  /**
   * Runs rounds. Each round measures every entrant once and starts with a different one. By default, peers are measured
   * at most five times.
   */
  readonly rounds: <A>(
    entrants: ReadonlyArray<Entrant>,
    repetitions: number,
    measure: (entrant: Entrant, repetition: number) => Effect.Effect<A, AgentError, Scope.Scope>,
    repetitionsOfPeers?: number
  ) => Effect.Effect<ReadonlyArray<Outcome<A>>>
}

const moduleOf = ({ contestant, root }: Entrant): URL =>
  root !== undefined ? new URL(`benchmarks/contestants/${contestant}.ts`, root) : new URL(
    contestant === "ours" || contestant === "raw" ? `../contestants/${contestant}.ts` : `../peers/${contestant}.ts`,
    import.meta.url
  )

const note = (line: string) => Effect.sync(() => void process.stderr.write(`${line}\n`))

/** `drop` ends the processes of an entrant that failed, because they may still be busy. */
const takingTurns = (drop: (entrant: Entrant) => Effect.Effect<void>): Bench["rounds"] =>
  Effect.fnUntraced(function*(
    entrants,
    repetitions,
    measure,
    repetitionsOfPeers = Math.min(repetitions, 5)
  ) {
    type Sample = Effect.Success<ReturnType<typeof measure>>
    const samples = entrants.map((): Array<Sample> => [])
    const failures = entrants.map((): string | undefined => undefined)
    for (let repetition = 0; repetition < repetitions; repetition++) {
      for (let turn = 0; turn < entrants.length; turn++) {
        const index = (turn + repetition) % entrants.length
        const entrant = entrants[index]!
        if (failures[index] !== undefined || (entrant.role === "peer" && repetition >= repetitionsOfPeers)) continue
        const exit = yield* measure(entrant, repetition).pipe(
          Effect.scoped,
          Effect.timeoutOrElse({
            duration: "2 minutes",
            orElse: () => Effect.die(new Error("did not finish within two minutes"))
          }),
          Effect.exit
        )
        if (Exit.isSuccess(exit)) samples[index]!.push(exit.value)
        // If effect-simba or raw has failed, there is nothing to compare
        else if (entrant.role === "ours" || entrant.role === "raw") return yield* Effect.die(Cause.squash(exit.cause))
        else {
          failures[index] = String(Cause.squash(exit.cause)).slice(0, 300)
          yield* note(`  ${entrant.name} (${entrant.setting}) failed: ${failures[index]}`)
          yield* drop(entrant)
        }
      }
    }
    return entrants.map((entrant, index) => ({ entrant, samples: samples[index]!, failure: failures[index] }))
  })

const peerEntrants = ({ fast, name }: Peer, pace: Pace): ReadonlyArray<Entrant> => [
  entrant(name, "peer", name),
  ...(pace.isQuick ? [] : [entrant(`${name} (${fast})`, "peer", name, { setting: "fast" })])
]

/** Two commits to measure instead of effect-simba and raw. */
export interface Compared {
  readonly ours: { readonly commit: string; readonly root: string }
  readonly against: { readonly commit: string; readonly root: string }
}

const comparedEntrants = (compared: Compared): Array<Entrant> => [
  { ...ours, root: compared.ours.root },
  { ...ours, name: compared.against.commit, role: "raw", root: compared.against.root }
]

/** Starts a server, and a connection to query it. Closing the scope ends both. */
export const startServer = Effect.gen(function*() {
  const server = yield* Effect.orDie(RedisServer.start({ args: ["--maxclients", "15000"] }))
  const admin = yield* Effect.acquireRelease(
    Effect.sync(() => new Redis(server.url)),
    (admin) => Effect.sync(() => admin.disconnect())
  )
  return { admin, server }
})

/**
 * Returns effect-simba, raw, and the three peers that were fastest in the earlier full run, each with its faster
 * setting. If there was no such run, or if there are at most three peers, returns all entrants.
 */
const closestOf = (everybody: ReadonlyArray<Entrant>, earlier: ReadonlyArray<Row>): ReadonlyArray<Entrant> => {
  const hasRoom = new Map(everybody.filter(({ role }) => role === "peer").map(({ contestant }) => [contestant, true]))
  const row = earlier.find(({ id }) => id === "handoff-10")
  if (row === undefined || hasRoom.size <= 3) return everybody
  const fastest = row.others
    .filter(({ value }) => Number.isFinite(value))
    .sort((a, b) => a.value! - b.value!)
    .flatMap(({ name }) => everybody.filter((one) => one.role === "peer" && one.name === name))
    .filter(({ contestant }) => {
      const isBetter = hasRoom.get(contestant) === true
      hasRoom.set(contestant, false)
      return isBetter
    })
  return [...everybody.filter(({ role }) => role !== "peer"), ...fastest.slice(0, 3)]
}

/** Returns the closest entrants with default settings, in the order of the table. */
export const atDefaults = ({ closest, everybody }: Pick<Bench, "closest" | "everybody">): ReadonlyArray<Entrant> =>
  everybody.filter((one) =>
    one.setting === "default" && closest.some(({ contestant }) => contestant === one.contestant)
  )

/**
 * Starts the server, and installs the peers unless two commits are compared. The rows of an earlier full run determine
 * which peers are closest.
 */
export const open = Effect.fnUntraced(function*(pace: Pace, earlier: ReadonlyArray<Row>, compared?: Compared) {
  const { admin, server } = yield* startServer
  const everybody = compared === undefined ? [ours, raw] : comparedEntrants(compared)
  const missing: Array<Outcome<never>> = []
  for (const peer of compared !== undefined ? [] : pace.isQuick ? peers.slice(0, 1) : peers) {
    yield* note(`installing ${peer.name}`)
    const failure = yield* installed(peer)
    if (failure === undefined) everybody.push(...peerEntrants(peer, pace))
    else {
      yield* note(`  ${failure}`)
      missing.push({ entrant: entrant(peer.name, "peer", peer.name), samples: [], failure })
    }
  }
  const scope = yield* Effect.scope
  const agents = new Map<string, Agent>()
  const connection = ({ localTurn, protocol, setting }: Entrant, connect: Partial<Connect>): Connect => ({
    url: server.url,
    isCluster: false,
    leaseMillis: 16_000,
    setting,
    localTurn,
    protocol,
    ...connect
  })
  const rounds = takingTurns(({ contestant }) =>
    Effect.forEach([...agents], ([key, agent]) =>
      key.startsWith(`${contestant} `)
        ? Effect.andThen(agent.kill, Effect.sync(() => agents.delete(key)))
        : Effect.void, { discard: true })
  )
  const bench: Bench = {
    pace,
    server,
    admin,
    everybody,
    closest: closestOf(everybody, earlier),
    missing,
    note,
    // Variants are not measured when two commits are compared
    rounds: (entrants, ...rest) =>
      rounds(compared === undefined ? entrants : entrants.filter(({ root }) => root !== undefined), ...rest),
    agent: Effect.fnUntraced(function*(entrant, connect = {}, number = 1) {
      const key = `${entrant.contestant} ${entrant.root ?? ""} ${number}`
      const agent = agents.get(key) ??
        (yield* start(entrant.contestant, moduleOf(entrant), entrant.root).pipe(Scope.provide(scope)))
      agents.set(key, agent)
      yield* agent.connect(connection(entrant, connect))
      return agent
    }),
    disconnectAll: Effect.suspend(() =>
      Effect.forEach(agents.values(), (agent) => Effect.ignore(agent.disconnect), { discard: true })
    ),
    freshAgent: (entrant, connect = {}) =>
      Effect.tap(
        start(entrant.contestant, moduleOf(entrant), entrant.root),
        (agent) => agent.connect(connection(entrant, connect))
      )
  }
  return bench
})
