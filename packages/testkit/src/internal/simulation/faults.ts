/** Schedules faults. Each kind draws from its own random stream, so disabling one kind does not change the others. */
import type { ErrorState } from "@effect-simba/fake-redis/Engine"
import type { Direction } from "../client/link.ts"
import type { Prng, Range } from "./prng.ts"
import type { ProcessorFault } from "./processor.ts"

/** A recurring fault. `every` is the mean interval, and `lasts` is the duration, in milliseconds. */
export interface Recurring {
  readonly every: number
  readonly lasts: Range
}

export interface Momentary {
  readonly every: number
}

export interface Faults {
  readonly requestDelay?: Range
  readonly replyDelay?: Range
  readonly messageDelay?: Range
  readonly loseRequest?: number
  readonly loseReply?: number
  readonly hang?: { readonly chance: number; readonly lasts: number }
  readonly reset?: number
  readonly straggle?: Range
  readonly lateMessage?: { readonly chance: number; readonly by: Range }
  readonly processor?: ProcessorFault
  readonly clog?: Recurring
  readonly partition?: Recurring
  readonly deafen?: Recurring
  readonly pause?: Recurring
  readonly suspend?: Recurring
  readonly kill?: Recurring
  readonly clockOffset?: number
  readonly clockRate?: number
  readonly clockStep?: Momentary & { readonly by: Range }
  readonly serverClockStep?: Momentary & { readonly by: Range }
  readonly errorState?: Recurring & { readonly states: ReadonlyArray<ErrorState> }
  readonly restart?: Momentary & { readonly loseData: number }
  readonly failover?: Momentary & { readonly lose: Range; readonly clock?: Range }
  readonly flushScripts?: Momentary
  readonly dropConnections?: Momentary
  readonly evict?: Momentary
}

export type FaultName = keyof Faults

export const linkFaults: ReadonlyArray<FaultName> = [
  "requestDelay",
  "replyDelay",
  "messageDelay",
  "loseRequest",
  "loseReply",
  "hang",
  "reset",
  "straggle",
  "lateMessage"
]

export const namesOf = (faults: Faults): ReadonlyArray<FaultName> => Object.keys(faults).sort() as Array<FaultName>

export const only = (faults: Faults, names: ReadonlyArray<FaultName>): Faults =>
  Object.fromEntries(namesOf(faults).filter((name) => names.includes(name)).map((name) => [name, faults[name]]))

/**
 * Returns a fault's random numbers. A renamed fault keeps its old stream, so known seeds still give the same histories.
 */
const streamOf = (prng: Prng, purpose: string, name: FaultName): Prng =>
  prng.stream(`${purpose} ${name === "failover" ? "failOver" : name}`)

/** Draws a subset of the faults. Each fault is included with a probability of one half. */
export const swarm = (faults: Faults, prng: Prng): ReadonlyArray<FaultName> =>
  namesOf(faults).filter((name) => streamOf(prng, "swarm", name).chance(0.5))

/** The operations that faults use to act on their targets. */
export interface Victims {
  readonly clients: number
  readonly after: (millis: number, run: () => void) => void
  readonly hold: (client: number, direction: Direction, fault: FaultName) => void
  readonly release: (client: number, direction: Direction, fault: FaultName) => void
  readonly deafen: (client: number, isDeaf: boolean) => void
  readonly pause: (client: number, suspend: boolean) => void
  readonly resume: (client: number) => void
  readonly kill: (client: number, restartAfter: number) => void
  readonly stepWall: (client: number, millis: number) => void
  readonly stepServer: (millis: number) => void
  readonly errorState: (state: ErrorState | undefined) => void
  readonly restart: (keepData: boolean) => void
  readonly failover: (lose: number, clockStep: number) => void
  readonly flushScripts: () => void
  readonly dropConnections: (client: number | undefined) => void
  readonly evict: (draw: () => number) => void
}

const ways: ReadonlyArray<ReadonlyArray<Direction>> = [["requests"], ["replies"], ["requests", "replies"]]

/** Starts the recurring faults. They happen while `on` returns true. */
export const start = (faults: Faults, prng: Prng, victims: Victims, on: () => boolean): void => {
  const recur = (name: FaultName, every: number | undefined, strike: (prng: Prng) => void) => {
    if (every === undefined) return
    const own = streamOf(prng, "fault", name)
    const next = () =>
      victims.after(-Math.log(1 - own.next()) * every, () => {
        if (!on()) return
        strike(own)
        next()
      })
    next()
  }
  const lasting = (
    name: FaultName,
    fault: Recurring | undefined,
    strike: (client: number, own: Prng) => () => void
  ) =>
    recur(name, fault?.every, (own) => {
      const client = own.int(victims.clients)
      const lasts = own.between(fault!.lasts)
      const end = strike(client, own)
      victims.after(lasts, () => on() && end())
    })
  const held =
    (name: FaultName, directions: (own: Prng) => ReadonlyArray<Direction>) => (client: number, own: Prng) => {
      const chosen = directions(own)
      for (const direction of chosen) victims.hold(client, direction, name)
      return () => chosen.forEach((direction) => victims.release(client, direction, name))
    }

  lasting("clog", faults.clog, held("clog", (own) => [own.pick(["requests", "replies"] as const)]))
  lasting("partition", faults.partition, held("partition", (own) => own.pick(ways)))
  lasting("deafen", faults.deafen, (client) => {
    victims.deafen(client, true)
    return () => victims.deafen(client, false)
  })
  lasting("pause", faults.pause, (client) => {
    victims.pause(client, false)
    return () => victims.resume(client)
  })
  lasting("suspend", faults.suspend, (client) => {
    victims.pause(client, true)
    return () => victims.resume(client)
  })
  recur("kill", faults.kill?.every, (own) => victims.kill(own.int(victims.clients), own.between(faults.kill!.lasts)))
  recur(
    "clockStep",
    faults.clockStep?.every,
    (own) => victims.stepWall(own.int(victims.clients), Math.round(own.between(faults.clockStep!.by)))
  )
  recur(
    "serverClockStep",
    faults.serverClockStep?.every,
    (own) => victims.stepServer(Math.round(own.between(faults.serverClockStep!.by)))
  )
  recur("errorState", faults.errorState?.every, (own) => {
    const { lasts, states } = faults.errorState!
    victims.errorState(own.pick(states))
    victims.after(own.between(lasts), () => on() && victims.errorState(undefined))
  })
  recur("restart", faults.restart?.every, (own) => victims.restart(!own.chance(faults.restart!.loseData)))
  recur("failover", faults.failover?.every, (own) => {
    const { clock, lose } = faults.failover!
    victims.failover(Math.floor(own.between(lose)), clock === undefined ? 0 : Math.round(own.between(clock)))
  })
  recur("flushScripts", faults.flushScripts?.every, () => victims.flushScripts())
  recur("dropConnections", faults.dropConnections?.every, (own) => {
    const target = own.int(victims.clients + 1)
    victims.dropConnections(target === victims.clients ? undefined : target)
  })
  recur("evict", faults.evict?.every, (own) => victims.evict(own.next))
}
