/**
 * The plan of stream ownership: a few consumers share a few data streams while producers announce and fill them, under
 * faults; in a part of the seeds beside stock consumers.
 */
import { RedisStreamStore, StreamKeys } from "@effect-simba/redis"
import { Checkers, Simulation, StreamCheckers } from "@effect-simba/testkit"
import { Duration, Effect } from "effect"
import { draws } from "./draws.ts"
import { type Ailment, busy, lease, maxFailures, service as serviceName, type Settings, sweep } from "./streamBehaviour.ts"

type ServiceName = Parameters<typeof StreamKeys.input>[0]
type StreamName = Parameters<typeof StreamKeys.streamLease>[0]
type EntryId = Parameters<typeof StreamKeys.entryLease>[1]

const service = serviceName as ServiceName
const name = (stream: string) => stream as StreamName

const endings: ReadonlyArray<unknown> = ["Done", "AlreadyDone", "Released", "Buried", "HandedOver"]

const identify = (stream: string, value: string) => `${stream}#${value.slice(value.lastIndexOf("@@") + 2)}`

/** KEYS LBS, failures, announced, entry lease, stream lease, ...; ARGV group, stream, entry, consumer, value, token, ... */
const released = (args: ReadonlyArray<string>, reply: unknown) => {
  const [command, , count] = args
  if (command !== "EVALSHA" && command !== "EVAL") return undefined
  const keys = Number(count)
  const [group, stream, , , , token] = args.slice(3 + keys)
  return keys >= 5 && args[4] === StreamKeys.failures(service) && group === StreamKeys.group(service) &&
      endings.includes(reply)
    ? { resource: stream!, id: `${stream}#${token}` }
    : undefined
}

const lockOf = (streams: ReadonlyArray<string>): Simulation.LockModel => ({
  resources: streams,
  ownerKey: (stream) => StreamKeys.streamLease(name(stream)),
  tokenKey: (stream) => StreamKeys.fence(name(stream)),
  identify,
  released,
  keep: (key, expires) =>
    key === StreamKeys.input(service) || streams.includes(key) ||
    (expires && /^simba:(fence|checkpoint|dead|failures|announced|start):/.test(key))
})

const fieldOf = (fields: ReadonlyArray<string>, name: string) => {
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) return fields[i + 1]
  return undefined
}

const modelOf = ({ stock, streams }: Settings): StreamCheckers.Model => {
  const stockClients = Array.from({ length: stock }, (_, index) => `c${index + 1}`)
  return {
    streams: [...streams.keys()],
    input: StreamKeys.input(service),
    group: StreamKeys.group(service),
    deadLetters: StreamKeys.deadLetters(service),
    failures: StreamKeys.failures(service),
    members: StreamKeys.members(service),
    checkpoint: (stream) => StreamKeys.checkpoint(name(stream)),
    deadMessages: (stream) => StreamKeys.deadMessages(name(stream)),
    entryLease: (stream, entry) => StreamKeys.entryLease(name(stream), entry as EntryId),
    announcement: (fields) => /"DataStreamName":"([^"]*)"/.exec(fieldOf(fields, "lbs-input") ?? "")?.[1],
    deadId: (fields) => fieldOf(fields, "simba-id"),
    holder: (value) => value.split("@@")[0],
    isStock: (text) => stockClients.includes(text) || text.startsWith("redis-consumer-stock-")
  }
}

/** A renewal that finds one of both leases gone removes the other. */
const oneOwner: Checkers.Checker = {
  name: Checkers.oneOwner.name,
  start: (view) =>
    Checkers.oneOwner.start({
      ...view,
      lock: {
        ...view.lock,
        released: (args, reply) => {
          const own = released(args, reply)
          if (own !== undefined || args[0] !== "EVALSHA" || args[3] !== StreamKeys.input(service)) return own
          const keys = Number(args[2])
          return view.lock.resources.flatMap((resource) => {
            const at = args.indexOf(view.lock.ownerKey(resource))
            // Entry, epoch and token of each come after group, consumer and time
            const token = at < 0 ? undefined : args[3 + keys + 3 + 3 * ((at - 5) / 2) + 2]
            return token === undefined ? [] : [{ resource, id: `${resource}#${token}` }]
          })
        }
      }
    })
}

export const program = (settings: Settings, on = RedisStreamStore.layer) => (client: Simulation.Client) =>
  Effect.provide(busy(client, settings), on)

/** Until a consumer looks again after an outage: its longest pause between tries, and the tries themselves. */
const recovery = Duration.millis(6000 + 2000)

/**
 * After the lease, a sweep by somebody who was to leave it to others first, and then the next. A server whose clock is set
 * back prolongs every lease by as much.
 */
const orphan = Duration.millis(lease + 2 * 1.2 * sweep + 2000 + 1500)

export const loadOf = (seed: number | string) => {
  const draw = draws(`streams/${seed}`)
  const pick = <A>(name: string, items: ReadonlyArray<A>) => items[Math.floor(draw(name) * items.length)]!
  const stock = pick("stock", [0, 0, 0, 1, 2])
  const consumers = pick("consumers", [1, 2, 3, 3, 4])
  const streams = new Map(Array.from({ length: pick("streams", [2, 4, 6, 10]) }, (_, index) => {
    const stream = `s${index + 1}`
    const ailment = draw("ailing") < 0.5
      ? "none"
      : pick<Ailment>(stream, ["none", "none", "none", "fails", "hangs", "slow", "poison"])
    return [stream, ailment]
  }))
  return {
    // Stock consumers know of no loss, and finish what nobody has read
    losses: stock === 0 && draw("losses") < 0.3,
    settings: {
      streams,
      stock,
      consumers,
      messages: pick("messages", [4, 10, 25]),
      capacity: pick("capacity", [1, 3, 8, 8, 64]),
      balance: draw("balance") < 0.7,
      enableEvents: draw("events") < 0.5,
      grace: pick("grace", [0, 500, 2000]),
      commitEvery: pick("commit", [1, 1, 3]),
      stays: pick("stays", [3000, 8000, 30_000]),
      freshIds: draw("ids") < 0.4,
      reapAfter: pick("reap", [4000, 60_000]),
      rest: pick("rest", [50, 500, 1500]),
      work: pick("work", [20, 200]),
      duplicates: pick("duplicates", [0, 0, 0.5, 2]),
      malformed: draw("malformed") < 0.3,
      fenced: draw("fenced") < 0.5
    } satisfies Settings
  }
}

const { evict: _evict, failOver: _failOver, ...harmless } = Simulation.allFaults
const lossless: Simulation.Faults = { ...harmless, restart: { every: 15_000, loseData: 0 } }

export interface Overrides extends Partial<Omit<Simulation.Options<never>, "program">> {
  readonly program?: ReturnType<typeof program>
}

export const streamPlan = (seed: number | string, overrides?: Overrides) => {
  const { losses, settings } = loadOf(seed)
  const { consumers, reapAfter, stock, streams } = settings
  return {
    seed,
    clients: stock + consumers,
    program: program(settings),
    lock: lockOf([...streams.keys()]),
    faults: losses ? Simulation.allFaults : lossless,
    checkers: [
      oneOwner,
      Checkers.tokensGrow,
      Checkers.ensureTellsTheTruth,
      Checkers.workIsProtected,
      Checkers.workNeverOverlaps,
      Checkers.writesAreFenced,
      Checkers.releasedAfterWork,
      Checkers.nothingIsLeft,
      ...StreamCheckers.all(modelOf(settings), {
        orphan,
        recovery,
        settle: "6 seconds",
        reaped: Duration.millis(3 * reapAfter),
        maxFailures
      })
    ],
    duration: "16 seconds",
    calm: "3 seconds",
    liveness: "200 seconds",
    closing: "20 seconds",
    ...overrides
  } as const
}
