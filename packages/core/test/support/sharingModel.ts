/**
 * Simulates a fleet that shares data streams according to `rebalancePlan.ts`. Members have outdated views, and
 * hand-overs take time.
 */
import type { Member } from "@effect-simba/core/streams/StreamStore"
import * as sharing from "../../src/streams/internal/rebalancePlan.ts"

export interface Start {
  readonly capacity: number
  readonly owned: number
}

export interface Move {
  readonly at: number
  readonly stream: number
  readonly from: number
  readonly to: number
}

interface Node {
  readonly index: number
  readonly member: Omit<Member, "owned">
  state: sharing.State
  streams: Map<number, sharing.Arrival | undefined>
  /** Maps each revoked data stream to the session of the member that will receive it. */
  leaving: Map<number, string>
  left: boolean
}

export const heartbeat = 1000
export const confirm = 1500
export const settings = sharing.settingsFor(heartbeat, confirm)

/**
 * - `chance`: returns a random number between 0 and 1.
 * - `lag`: the longest delay of a reply to a heartbeat, in milliseconds.
 * - `grace`: the longest time that a data stream takes to end after it was revoked, in milliseconds.
 */
export class Fleet {
  readonly nodes: Array<Node> = []
  readonly moves: Array<Move> = []
  private readonly chance: () => number
  private readonly lag: number
  private readonly grace: number
  private readonly registry = new Map<string, Member>()
  private readonly agenda: Array<{ readonly at: number; readonly order: number; readonly run: () => void }> = []
  private now = 0
  private order = 0
  private lastStream = 0

  constructor(starts: ReadonlyArray<Start>, chance: () => number, lag: number, grace = 5000) {
    this.chance = chance
    this.grace = grace
    this.lag = lag
    for (const start of starts) this.join(start)
  }

  join(start: Start): void {
    const index = this.nodes.length
    const session = String(index).padStart(12, "0")
    const node: Node = {
      index,
      member: { consumer: `simba-consumer-${index}` as Member["consumer"], session, capacity: start.capacity },
      state: sharing.initial,
      streams: new Map(),
      leaving: new Map(),
      left: false
    }
    for (let i = 0; i < start.owned; i++) node.streams.set(++this.lastStream, undefined)
    this.nodes.push(node)
    this.after(this.chance() * heartbeat, () => this.heartbeat(node))
  }

  leave(index: number): void {
    const node = this.nodes[index]!
    node.left = true
    this.registry.delete(node.member.session)
  }

  get time(): number {
    return this.now
  }

  owned(): ReadonlyArray<number> {
    return this.nodes.filter((node) => !node.left).map((node) => node.streams.size)
  }

  /**
   * Runs until no data stream has been revoked or handed over for three simulated minutes. Returns whether that
   * happened within `limit` milliseconds.
   */
  rest(limit = 4_000_000): boolean {
    const end = this.now + limit
    let since = this.now
    while (this.now < end) {
      const before = this.moves.length
      this.step()
      if (this.moves.length > before || this.nodes.some((node) => node.leaving.size > 0)) since = this.now
      if (this.now - since > 180_000) return true
    }
    return false
  }

  private after(delay: number, run: () => void): void {
    this.agenda.push({ at: this.now + delay, order: this.order++, run })
  }

  private step(): void {
    let next = 0
    this.agenda.forEach((entry, index) => {
      const first = this.agenda[next]!
      if (entry.at < first.at || (entry.at === first.at && entry.order < first.order)) next = index
    })
    const [entry] = this.agenda.splice(next, 1)
    this.now = entry!.at
    entry!.run()
  }

  private heartbeat(node: Node): void {
    if (node.left) return
    const { session } = node.member
    this.registry.set(session, {
      ...node.member,
      owned: sharing.registered(node.state, node.streams.size, this.now)
    })
    const members = [...this.registry.values()]
    this.after(this.chance() * this.lag, () => this.act(node, members))
    this.after(heartbeat, () => this.heartbeat(node))
  }

  private act(node: Node, members: ReadonlyArray<Member>): void {
    if (node.left) return
    const view = () => {
      const { session } = node.member
      const leaving = [...node.leaving.values()]
      return { members, session, owned: node.streams.size, leaving, movable: this.movable(node).length }
    }
    node.state = sharing.observe(node.state, view(), this.now, settings)
    const decision = sharing.plan(node.state, view(), this.now, settings)
    for (let i = 0; i < (decision?.count ?? 0); i++) {
      const movable = this.movable(node)
      if (movable.length === 0) return
      const stream = movable[Math.floor(this.chance() * movable.length)]!
      node.leaving.set(stream, decision!.to.session)
      this.after(this.chance() * this.grace, () => this.handOver(node, stream, decision!.to.session))
    }
  }

  private handOver(node: Node, stream: number, session: string): void {
    node.leaving.delete(stream)
    const to = this.nodes.find(({ member }) => member.session === session)!
    if (node.left || to.left) return
    node.streams.delete(stream)
    node.state = sharing.handedOver(node.state, session, this.now, settings)
    this.moves.push({ at: this.now, stream, from: node.index, to: to.index })
    this.after(this.chance() * confirm, () => to.streams.set(stream, { membership: to.state.membership, at: this.now }))
  }

  private movable(node: Node): ReadonlyArray<number> {
    return [...node.streams].flatMap(([stream, arrival]) =>
      !node.leaving.has(stream) && sharing.isMovable(node.state, arrival, this.now, settings) ? [stream] : []
    )
  }
}
