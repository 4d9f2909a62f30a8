/**
 * Determines when each client in a nemesis run was disturbed. The checkers excuse violations that a disturbance
 * explains.
 */
import type { Fault } from "./faults.ts"
import type { History } from "./judge.ts"

type Span = readonly [from: number, to: number]

const never = -Infinity

/** Maximum time in milliseconds for clients to reconnect and resubscribe. */
const restored = 3000

/** Maximum delay in milliseconds until a client notices that its subscription has ended. */
const noticed = 5000

/** An event-loop turn longer than this, in milliseconds, counts as a disturbance. */
const long = 150

/**
 * Indexes intervals for binary search: sorted by start, with a running maximum of their ends. An hour-long run has
 * thousands of intervals.
 */
const spansOf = (unordered: ReadonlyArray<Span>) => {
  const spans = [...unordered].sort(([a], [b]) => a - b)
  let last = never
  const ends = spans.map(([, to]) => last = Math.max(last, to))
  const begunBy = (now: number) => {
    let [low, high] = [0, spans.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (spans[middle]![0] <= now) low = middle + 1
      else high = middle
    }
    return low
  }
  return {
    /** Returns the latest instant up to `now` that lies within an interval. */
    lastWithin: (now: number) => {
      const begun = begunBy(now)
      return begun === 0 ? never : Math.min(now, ends[begun - 1]!)
    },
    /** Yields the intervals that began by `now`, latest first. Stops where no earlier interval can reach `until`. */
    backFrom: function*(now: number, until: number) {
      for (let i = begunBy(now) - 1; i >= 0 && ends[i]! >= until; i--) yield spans[i]!
    }
  }
}

const span = ({ from, to }: Fault): Span => [from, to]

/** Extends server faults by `restored`, because clients reconnect and resubscribe one by one. */
const disturbance = ({ from, target, to }: Fault): Span => [from, target === "server" ? to + restored : to]

/** Memoizes `make` per key. */
const remembered = <Key, A>(make: (key: Key) => A) => {
  const known = new Map<Key, A>()
  return (key: Key): A => {
    const found = known.get(key)
    if (found !== undefined) return found
    const value = make(key)
    known.set(key, value)
    return value
  }
}

export const disturbancesOf = ({ faults, lines, observed, phases }: History) => {
  const turns = new Map<string, Array<Span>>()
  for (const [at, client, , kind, fields] of lines) {
    if (kind !== "late") continue
    const known = turns.get(client) ?? []
    turns.set(client, known)
    known.push([Number(fields["from"]), at])
  }
  /**
   * Each client's periods before it resubscribed. It may have noticed late that its connection was gone, and not
   * received any messages until then.
   */
  const deaf = new Map<string, Array<Span>>()
  const inboxes = new Map<string, string>()
  for (const [, client, , kind, { id }] of lines) {
    const inbox = kind === "granted" ? /^\d+-([0-9a-z]{12}):/.exec(String(id))?.[1] : undefined
    if (inbox !== undefined) inboxes.set(`simba:inbox:${inbox}`, client)
  }
  for (const { args: [name, ...channels], at } of observed) {
    if (name !== "SUBSCRIBE") continue
    const client = inboxes.get(channels.find((channel) => inboxes.has(channel)) ?? "")
    if (client !== undefined) deaf.set(client, [...deaf.get(client) ?? [], [at - noticed, at]])
  }
  // A closing process is skipped once it has unsubscribed, even if its request to leave a queue is still in flight
  const closing = phases.find(([phase]) => phase === "closing")?.[1] ?? Infinity
  const unsubscribed = new Map<string, number>()
  for (const { args: [name, ...channels], at } of observed) {
    if (name !== "UNSUBSCRIBE" || at < closing) continue
    for (const channel of channels) {
      const client = inboxes.get(channel)
      if (client !== undefined) unsubscribed.set(client, Math.min(unsubscribed.get(client) ?? Infinity, at))
    }
  }
  const losses = spansOf(faults.filter(({ loses }) => loses).map(span))
  const late = remembered((client: string) => spansOf(turns.get(client) ?? []))
  const disturbed = remembered((client: string | undefined) =>
    spansOf([
      ...faults.filter(({ target }) => target === "server" || target === client).map(disturbance),
      ...client === undefined ? [] : (turns.get(client) ?? []).filter(([from, to]) => to - from > long),
      ...client === undefined ? [] : deaf.get(client) ?? [],
      [unsubscribed.get(client ?? "") ?? Infinity, Infinity]
    ])
  )
  const faultsOf = remembered((client: string) => faults.filter(({ target }) => target === client))
  const stops = remembered((client: string) => faultsOf(client).filter(({ kind }) => kind !== "kill"))
  return {
    disturbedAt: (client: string | undefined, now: number) => disturbed(client).lastWithin(now),
    lossAt: (now: number) => losses.lastWithin(now),
    isRunning: (client: string, now: number) => !faultsOf(client).some(({ from, to }) => from <= now && now < to),
    resumedAt: (client: string, now: number) =>
      stops(client).reduce((last, { to }) => to <= now ? Math.max(last, to) : last, never),
    /**
     * Returns the length of the client's longest event-loop turn around `now`, in milliseconds. Short turns, which are
     * not reported, count as 25.
     */
    lateness: (client: string, now: number) => {
      let longest = 25
      for (const [from, to] of late(client).backFrom(now, now - 20)) {
        if (now <= to + 20) longest = Math.max(longest, to - from)
      }
      return longest
    }
  }
}
