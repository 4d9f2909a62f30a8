/**
 * The history of a fleet, as a timeline shows it. It is derived from the simulation's events. The queue, the
 * parcels, the violations and the time are set from outside.
 */
import type { Simulation } from "@effect-simba/testkit"
import { Lane, type Mark, type Span, type Tenure } from "./lane.ts"

export class History {
  readonly lanes: Array<Lane> = []
  readonly tenures: Array<Tenure> = []
  /** Events that affected the server. */
  readonly server: Array<Mark> = []
  readonly events: Array<Simulation.Event> = []
  readonly violations: Array<{ readonly at: number; readonly checker: string; readonly message: string }> = []
  parcels: ReadonlyArray<Simulation.Parcel> = []
  /** The ordinal of each token, from 1. Tokens are long numbers, and only their order matters. */
  readonly ordinals = new Map<number, number>()
  now = 0
  /** Whether a resource outside Redis has reported a write, accepted or refused. */
  hasWrites = false
  private readonly work = new Map<string, Span>()
  private readonly lock: Simulation.LockModel
  private readonly byName = new Map<string, Lane>()
  private readonly clients = new Map<string, string>()
  private readonly holders = new Map<string, Tenure>()
  private readonly confirmed = new Set<string>()
  private readonly used = new Set<string>()
  /** Ids of leases under which protected work is running. */
  private readonly begun = new Set<string>()
  private queued: ReadonlyArray<string> = []

  constructor(lock: Simulation.LockModel) {
    this.lock = lock
  }

  lane(name: string): Lane {
    let lane = this.byName.get(name)
    if (lane === undefined) {
      lane = new Lane(name)
      this.byName.set(name, lane)
      this.lanes.push(lane)
    }
    return lane
  }

  /** The resources to show. If there are several, shows only those that have had an owner. */
  get resources(): ReadonlyArray<string> {
    const { resources } = this.lock
    return resources.length <= 1 ? resources : resources.filter((resource) => this.used.has(resource))
  }

  /** Returns the process that uses an id. */
  clientOf(id: string): string | undefined {
    return this.clients.get(id)
  }

  /** Returns the work under a lease. */
  workUnder(id: string): Span | undefined {
    return this.work.get(id)
  }

  owner(resource: string): Tenure | undefined {
    return this.holders.get(resource)
  }

  places(queue: ReadonlyArray<string>): void {
    this.queued = queue
  }

  /** Returns a process's place among the waiting processes, from 1. */
  placeOf(client: string): number | undefined {
    const index = this.queued.findIndex((id) => this.clients.get(id) === client)
    return index === -1 ? undefined : index + 1
  }

  add(event: Simulation.Event): void {
    this.events.push(event)
    if (event._tag === "Note") this.note(event)
    else if (event._tag === "Fault") this.fault(event)
    else if (event._tag === "Command") this.command(event)
    else if (event._tag === "Owner") this.owned(event)
    else if (event._tag === "Phase" && event.phase === "liveness") this.healed(event.at)
  }

  private note({ at, client, fields, generation, kind }: Simulation.Event & { readonly _tag: "Note" }): void {
    if (client === "outside") return this.outside(at, kind, fields)
    const lane = this.lane(client)
    if (generation > lane.generation) this.started(lane, at, generation)
    const resource = String(fields["resource"] ?? "")
    const id = String(fields["id"] ?? "")
    const token = fields["token"] === undefined ? undefined : Number(fields["token"])
    const wait = `wait ${fields["wait"]}`
    switch (kind) {
      case "waiting":
        lane.begin("waiting", at, { resource, id: wait })
        return this.settle(lane)
      case "waited":
        lane.end("waiting", at, fields["served"] === 1 ? "served" : "gave up", wait)
        return this.settle(lane)
      case "granted":
        this.clients.set(id, client)
        if (id.includes("#")) {
          lane.streams.add(resource)
          return lane.count(at)
        }
        if (!lane.has("leading", id)) this.work.set(id, lane.begin("leading", at, { resource, id, token }))
        if (token !== undefined && !this.ordinals.has(token)) this.ordinals.set(token, this.ordinals.size + 1)
        lane.token = token
        return this.settle(lane)
      case "begin":
        this.begun.add(id)
        return
      case "end":
        this.begun.delete(id)
        if (id.includes("#")) {
          lane.streams.delete(resource)
          return lane.count(at)
        }
        lane.end("leading", at, "released", id)
        return this.settle(lane)
      case "lost": {
        const last = lane.spans.findLast(({ kind }) => kind === "leading")
        if (last !== undefined) last.end = "lost"
        lane.mark("lost", at, `lost token ${fields["token"]}: ${fields["reason"]}`)
        lane.activity = "lost"
        return
      }
      case "wrote":
        return lane.mark("wrote", at, `wrote with token ${fields["token"]}`)
      case "refused":
      case "stale":
        return lane.mark(
          "refused",
          at,
          `refused: token ${fields["token"] ?? "of a former owner"} is smaller than ${fields["largest"]}`
        )
      case "failed":
      case "unwritten":
        return lane.mark("failed", at, `failed: ${fields["error"] ?? "a write"}`)
    }
  }

  /** Records a write that a resource outside of Redis has reported. */
  private outside(at: number, kind: string, fields: Readonly<Record<string, string | number>>): void {
    const client = this.clients.get(String(fields["id"]))
    if (kind !== "written" || client === undefined) return
    const isAccepted = fields["accepted"] === 1
    this.lane(client).mark(
      isAccepted ? "wrote" : "refused",
      at,
      `${isAccepted ? "wrote with" : "refused:"} token ${fields["token"]}`
    )
    this.hasWrites = true
  }

  /** Called when the simulator has removed all faults. */
  private healed(at: number): void {
    for (const lane of this.lanes) for (const kind of ["paused", "cut", "slow"] as const) lane.end(kind, at)
  }

  private settle(lane: Lane): void {
    lane.activity = lane.has("leading") ? "leading" : lane.has("waiting") ? "waiting" : "idle"
  }

  private started(lane: Lane, at: number, generation: number): void {
    lane.generation = generation
    this.stopped(lane, at)
    if (lane.end("down", at)) lane.mark("start", at, "restarted")
  }

  private stopped(lane: Lane, at: number): void {
    for (const kind of ["waiting", "leading", "paused"] as const) lane.end(kind, at, "killed")
    lane.activity = "idle"
    if (lane.streams.size > 0) {
      lane.streams.clear()
      lane.count(at)
    }
  }

  private fault({ at, fault, target, text }: Simulation.Event & { readonly _tag: "Fault" }): void {
    if (target === "server") {
      this.server.push({ kind: "server", at, text: `${fault}${text === "" ? "" : `: ${text}`}` })
      return
    }
    const lane = this.lane(target)
    const isOver = text.endsWith("over")
    switch (fault) {
      case "kill":
        this.stopped(lane, at)
        lane.begin("down", at)
        return lane.mark("crash", at, "crashed")
      case "start":
        if (lane.end("down", at)) lane.mark("start", at, "restarted")
        else lane.mark("start", at, "joined")
        return
      case "pause":
      case "suspend":
        return void lane.begin("paused", at)
      case "resume":
        return void lane.end("paused", at)
      case "partition":
      case "clog":
        if (isOver) return void lane.end("cut", at)
        if (!lane.has("cut")) lane.begin("cut", at)
        return
      case "link":
        lane.end("slow", at)
        if (text !== "") lane.begin("slow", at)
        return
      case "clockStep":
        return lane.mark("skew", at, `clock stepped by ${text}`)
      default:
        return lane.mark("fault", at, `${fault}${text === "" ? "" : ` ${text}`}`)
    }
  }

  private command({ at, command }: Simulation.Event & { readonly _tag: "Command" }): void {
    const { args, client, reply } = command
    const asked = this.lock.asked?.(args, reply)
    let isOperation = false
    for (const { id } of asked === undefined ? [] : Array.isArray(asked) ? asked : [asked]) {
      this.clients.set(id, client)
      isOperation = true
    }
    if (isOperation || this.holders.size === 0 || args.length < 5) return
    const released = this.lock.released?.(args, reply)
    if (Array.isArray(released) ? released.length > 0 : released !== undefined) return
    // A command that is neither an acquire nor a release, but names the mutex and its owner's id, confirms or renews
    // the lease
    for (const { client: owner, from, id, resource } of this.holders.values()) {
      if (owner !== client || !args.includes(id) || !args.includes(this.lock.ownerKey(resource))) continue
      const isFirst = at - from < 1500 && !this.confirmed.has(id)
      this.confirmed.add(id)
      this.lane(client).mark(isFirst ? "confirmed" : "renewal", at, `${isFirst ? "confirmed" : "renewed"} its lease`)
    }
  }

  private owned({ at, command, resource, to, token }: Simulation.Event & { readonly _tag: "Owner" }): void {
    const before = this.holders.get(resource)
    // A command that ends a lease is not a renewal, even if the lock model did not recognize it as a release
    const last = before?.client === undefined ? undefined : this.lane(before.client).marks
    if (command !== undefined && last?.at(-1)?.kind === "renewal" && last.at(-1)!.at === at) last.pop()
    if (before !== undefined) {
      before.to = at
      before.end = command === undefined ? "expired" : to === undefined ? "released" : "handed over"
      this.holders.delete(resource)
      // No protected work runs under the lease, so nothing else records its end
      if (before.client !== undefined && !this.begun.has(before.id)) {
        const lane = this.lane(before.client)
        if (lane.end("leading", at, command === undefined ? "lost" : "released", before.id)) this.settle(lane)
      }
    }
    this.used.add(resource)
    if (to === undefined) return
    const client = this.clients.get(to) ?? command?.client
    if (!this.clients.has(to) && client !== undefined && command !== undefined && before === undefined) {
      this.clients.set(to, client)
    }
    const tenure: Tenure = {
      resource,
      id: to,
      client: this.clients.get(to),
      token,
      from: at,
      to: undefined,
      end: undefined
    }
    this.holders.set(resource, tenure)
    this.tenures.push(tenure)
  }
}
