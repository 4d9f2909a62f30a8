/** Which client was disturbed, and when: the checkers excuse the consequences. */
import type { Fault } from "./faults.ts"
import type { History } from "./judge.ts"

type Span = readonly [from: number, to: number]

const never = -Infinity

/** How long clients take to connect and subscribe again. Milliseconds. */
const restored = 3000

/** How long after the end of a subscription its client may notice. Milliseconds. */
const noticed = 5000

/** Turns of this length are a disturbance too, for any reason. Milliseconds. */
const long = 150

/** Intervals by their beginnings, each with the last end up to there: a run of an hour has thousands. */
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
    /** The last instant up to now that lies within one of them. */
    lastWithin: (now: number) => {
      const begun = begunBy(now)
      return begun === 0 ? never : Math.min(now, ends[begun - 1]!)
    },
    /** Those that have begun, the latest first, as long as one of them may reach `until`. */
    backFrom: function*(now: number, until: number) {
      for (let i = begunBy(now) - 1; i >= 0 && ends[i]! >= until; i--) yield spans[i]!
    }
  }
}

const span = ({ from, to }: Fault): Span => [from, to]

/** After a fault of a server, connections and subscriptions come back one by one. */
const disturbance = ({ from, target, to }: Fault): Span => [from, target === "server" ? to + restored : to]

/** A value for each client. */
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
  /** A process that subscribes again was deaf before: it noticed late that its connection was gone. */
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
  /** A process that ends and has unsubscribed is skipped, also while its request to leave a queue is on its way. */
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
    /** Its current turn: timers report it when it is over. */
    lateness: (client: string, now: number) => {
      let longest = 25
      for (const [from, to] of late(client).backFrom(now, now - 20)) {
        if (now <= to + 20) longest = Math.max(longest, to - from)
      }
      return longest
    }
  }
}
