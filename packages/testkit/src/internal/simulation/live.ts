/**
 * A simulation driven by its caller, who lets time pass and injects faults. Returned by `Simulation.begin`, and
 * advanced through `run`.
 */
import type { ErrorState, Reply } from "@effect-simba/fake-redis/Engine"
import type { Cargo, LinkFaults } from "../client/link.ts"
import type { Event } from "./history.ts"
import type { ProcessSlot } from "./process.ts"
import type { Running } from "./run.ts"

/** A message between a process and the server. Times are virtual, in milliseconds. */
export interface Parcel {
  readonly client: string
  readonly kind: "request" | "reply" | "message"
  /** The command in the request. For a reply, the command that it belongs to. */
  readonly args: ReadonlyArray<string>
  readonly reply: Reply | undefined
  /** The channel of a published message. Empty for requests and replies. */
  readonly channel: string
  readonly text: string
  readonly sentAt: number
  /** `undefined` while the message is in flight, and forever if it is lost. */
  readonly arrivedAt: number | undefined
}

/** The current state of a process. */
export interface LiveProcess {
  readonly name: string
  readonly state: "running" | "paused" | "dead"
  /** The number of this client's process. It increases with each restart after a kill or a failure. */
  readonly generation: number
  readonly isCut: boolean
  /** The sum of all steps of its wall clock, in milliseconds. */
  readonly clockStep: number
}

/** Actions take effect immediately, at the current virtual time. */
export interface Live {
  /** Virtual time in milliseconds since the start. */
  readonly now: () => number
  /** Lets time pass until the given instant. */
  readonly advance: (until: number) => void
  /** Whether all phases have ended, or a checker has found a violation. */
  readonly isOver: () => boolean
  /** All events so far. Always the same array, which grows. */
  readonly events: ReadonlyArray<Event>
  /** Everything sent over the links, in order. Always the same array, which grows. */
  readonly parcels: ReadonlyArray<Parcel>
  readonly processes: () => ReadonlyArray<LiveProcess>
  /**
   * Reads a key on the server. Hashes and sorted sets are returned as alternating keys and values. For a stream or a
   * missing key, returns an empty array.
   */
  readonly read: (key: string) => ReadonlyArray<string>
  /** Adds a process that runs the program. Returns the process's name. */
  readonly add: () => string
  /** Kills a process. Its finalizers do not run. */
  readonly kill: (client: string) => void
  /** Starts a new process for a client whose process was killed. */
  readonly restart: (client: string) => void
  readonly pause: (client: string) => void
  readonly resume: (client: string) => void
  /** Cuts off a process. No requests, replies or published messages pass until `heal`. */
  readonly cut: (client: string) => void
  readonly heal: (client: string) => void
  /** Replaces a link's faults. Delays that are not set come from the options. */
  readonly setLink: (client: string, faults: LinkFaults) => void
  readonly stepClock: (client: string, millis: number) => void
  readonly stepServerClock: (millis: number) => void
  readonly restartServer: (options: { readonly keepData: boolean }) => void
  /** Fails over to a replica that is missing the last writes. */
  readonly failover: (options: { readonly loseLastWrites: number }) => void
  /** Ends all subscriptions, as `CLIENT KILL TYPE pubsub` does. */
  readonly dropSubscribers: () => void
  readonly setErrorState: (state: ErrorState | undefined) => void
}

const waysOut = ["requests", "replies"] as const

const pairsOf = (entries: Iterable<readonly [string, string | number]>) =>
  [...entries].flatMap(([key, value]) => [key, String(value)])

export const make = ({ actions, add, advance, hasEnded, processes, state }: Running): Live => {
  const { server, setup, slots, world } = state
  const calm = { requestDelay: setup.network.requestDelay, replyDelay: setup.network.replyDelay }
  const parcels: Array<Parcel> = []
  const cuts = new Set<string>()
  const steps = new Map<string, number>()

  /** Records everything that is sent over the link. `onSend` returns a function, which is called on arrival. */
  const observe = (client: string) => {
    server.link(client).onSend = (cargo: Cargo) => {
      const push = cargo.kind === "message" ? cargo.push as { readonly channel: string; readonly message: string } : {
        channel: "",
        message: ""
      }
      const parcel = {
        client,
        kind: cargo.kind,
        args: cargo.kind === "message" ? [] : cargo.args,
        reply: cargo.kind === "reply" ? cargo.reply as Reply : undefined,
        channel: push.channel,
        text: push.message,
        sentAt: world.now(),
        arrivedAt: undefined as number | undefined
      }
      parcels.push(parcel)
      return () => {
        parcel.arrivedAt = world.now()
      }
    }
  }
  for (const { name } of slots) observe(name)

  const slotOf = (client: string): ProcessSlot => {
    const slot = state.slotOf(client)
    if (slot === undefined) throw new RangeError(`there is no process ${client}`)
    return slot
  }
  /** Performs an action, then lets the processes react at the same instant. */
  const act = <Args extends ReadonlyArray<unknown>>(run: (...args: Args) => void) => (...args: Args) => {
    run(...args)
    world.settle()
  }
  const on = <Args extends ReadonlyArray<unknown>>(run: (index: number, ...args: Args) => void) =>
    act((client: string, ...args: Args) => run(slotOf(client).index, ...args))

  return {
    now: world.now,
    advance: (until) => advance(Math.max(until, world.now())),
    isOver: hasEnded,
    events: state.events,
    parcels,
    processes: () =>
      slots.map(({ generation, name, process }) => ({
        name,
        generation,
        state: process.state,
        isCut: cuts.has(name),
        clockStep: steps.get(name) ?? 0
      })),
    read: (key) => {
      const dump = server.engine.dump(0, key)
      if (dump === undefined || dump.type === "stream") return []
      if (dump.type === "string") return [dump.value]
      return dump.type === "hash" || dump.type === "zset" ? pairsOf(dump.value) : dump.value
    },
    add: () => {
      observe(`c${slots.length + 1}`)
      add()
      const { name } = slots.at(-1)!
      state.fault("start", name)
      world.settle()
      return name
    },
    kill: on((index) => {
      const slot = slots[index]!
      // The `pause` fault ends with the process
      if (slot.process.state === "paused") state.end(slot)
      actions.kill(index, Infinity)
      steps.delete(slot.name)
    }),
    restart: on((index) => {
      const slot = slots[index]!
      if (slot.process.state !== "dead") return
      state.fault("start", slot.name)
      processes.restart(slot, slot.generation)
    }),
    pause: on((index) => {
      if (slots[index]!.process.state === "running") actions.pause(index, false)
    }),
    resume: on((index) => {
      if (slots[index]!.process.state === "paused") actions.resume(index)
    }),
    cut: on((index) => {
      const { name } = slots[index]!
      if (cuts.has(name)) return
      cuts.add(name)
      for (const direction of waysOut) actions.hold(index, direction, "partition")
    }),
    heal: on((index) => {
      if (!cuts.delete(slots[index]!.name)) return
      for (const direction of waysOut) actions.release(index, direction, "partition")
    }),
    setLink: act((client: string, faults: LinkFaults) => {
      server.link(slotOf(client).name).faults = { ...calm, ...faults }
      state.fault("link", client, Object.keys(faults).join(" "))
    }),
    stepClock: on((index, millis: number) => {
      const { name } = slots[index]!
      steps.set(name, (steps.get(name) ?? 0) + millis)
      actions.stepWall(index, millis)
    }),
    stepServerClock: act((millis: number) => actions.stepServer(millis)),
    restartServer: act(({ keepData }: { readonly keepData: boolean }) => actions.restart(keepData)),
    failover: act(({ loseLastWrites }: { readonly loseLastWrites: number }) => actions.failover(loseLastWrites, 0)),
    dropSubscribers: act(() => {
      const session = server.engine.connect(() => {}, { db: 0 })
      server.run(() => session.execute(["CLIENT", "KILL", "TYPE", "pubsub"], () => {}))
      session.close()
      state.fault("drop subscribers", "server")
    }),
    setErrorState: act((errorState: ErrorState | undefined) => actions.errorState(errorState))
  }
}
