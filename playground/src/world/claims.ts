/** The scenarios' claims, checked against their histories. */
import type { History } from "../view/history.ts"
import type { Span } from "../view/lane.ts"
import type { Claim } from "./scenarios.ts"

const worked = (history: History): ReadonlyArray<Span & { readonly client: string }> =>
  history.lanes
    .flatMap(({ name, spans }) => spans.flatMap((span) => span.kind === "leading" ? [{ ...span, client: name }] : []))
    .sort((a, b) => a.from - b.from)

const leaders = (history: History) => worked(history).map(({ client }) => client)

/** Claims that these processes lead in this order. */
export const leadersInOrder = (expected: ReadonlyArray<string>): Claim => ({
  text: expected.length > 5
    ? `All ${expected.length} lead in the order in which they queued`
    : `${expected.join(", ")} lead in this order`,
  holds: (history) => {
    const found = leaders(history)
    if (found.some((name, index) => index < expected.length && name !== expected[index])) return false
    return found.length >= expected.length ? true : undefined
  }
})

export const tokensGrow: Claim = {
  text: "Tokens grow with each grant",
  holds: (history) => {
    const tokens = worked(history).map(({ token }) => token ?? 0)
    if (tokens.some((token, index) => index > 0 && token <= tokens[index - 1]!)) return false
    return tokens.length > 1 ? true : undefined
  }
}

/** Measures from the end of one process's work to the start of the next process's work. */
export const handsOverWithin = (millis: number): Claim => ({
  text: `Each hand-off takes at most ${millis} ms`,
  holds: (history) => {
    const all = worked(history)
    const gaps = all.flatMap((span, index) => index === 0 ? [] : [span.from - (all[index - 1]!.to ?? Infinity)])
    if (gaps.some((gap) => gap > millis)) return false
    return gaps.length >= 3 ? true : undefined
  }
})

/** The grant message needs one trip over the slow link. A notification followed by a request would need three. */
export const beginsByMessage = (client: string, millis: number): Claim => ({
  text: `${client} starts its work one trip after the grant`,
  holds: (history) => {
    const grant = history.tenures.find((tenure) => tenure.client === client)
    const work = worked(history).find((span) => span.client === client)
    if (grant === undefined || work === undefined) return undefined
    return work.from - grant.from <= millis
  }
})

export const neverBeforeExpiry: Claim = {
  text: "Nobody leads before the lease has expired",
  holds: (history) => {
    const crash = history.lanes.flatMap(({ marks }) => marks).find(({ kind }) => kind === "crash")
    if (crash === undefined) return undefined
    const held = history.tenures.find(({ from, to }) => from <= crash.at && (to === undefined || to > crash.at))
    if (held?.to === undefined) return undefined
    const expiry = held.to
    return expiry - crash.at > 1000 && worked(history).every(({ from }) => from <= crash.at || from >= expiry)
  }
}

/** Measures from the end of the dead process's lease to the start of the next leader's work. */
export const takesOverWithin = (millis: number): Claim => ({
  text: `The first waiter leads within ${millis} ms of the expiry`,
  holds: (history) => {
    const crash = history.lanes.flatMap(({ marks }) => marks).find(({ kind }) => kind === "crash")
    if (crash === undefined) return undefined
    const next = worked(history).find(({ from }) => from > crash.at)
    const held = history.tenures.find(({ from, to }) => from <= crash.at && (to === undefined || to > crash.at))
    if (next === undefined || held?.to === undefined) return undefined
    return next.from - held.to <= millis
  }
})

export const refusedWrites: Claim = {
  text: "The ledger refuses the late write of c1, and no other",
  holds: ({ lanes }) => {
    const refused = lanes.flatMap(({ marks, name }) => marks.flatMap(({ kind }) => kind === "refused" ? [name] : []))
    if (refused.some((name) => name !== "c1")) return false
    return refused.length > 0 ? true : undefined
  }
}

export const lostBy = (client: string): Claim => ({
  text: `${client} learns that it has lost its lease`,
  holds: (history) => history.lane(client).marks.some(({ kind }) => kind === "lost") ? true : undefined
})

export const neverTwoAtWork: Claim = {
  text: "No two processes work at the same time",
  holds: (history) => {
    const all = worked(history)
    const overlap = all.some((span, index) => index > 0 && (all[index - 1]!.to ?? history.now) > span.from)
    if (overlap) return false
    return all.length > 1 ? true : undefined
  }
}

export const everybodyLed: Claim = {
  text: "Every process leads more than once",
  holds: (history) =>
    history.lanes.every(({ spans }) => spans.filter(({ kind }) => kind === "leading").length >= 2) ? true : undefined
}

/**
 * Counts the commands in any 100 ms, from shortly before the crashed leader's lease ends until shortly after the next
 * leader starts.
 */
export const noHerd = (most: number): Claim => ({
  text: `At most ${most} requests per 100 ms reach the server when the lease expires`,
  holds: (history) => {
    const crash = history.lanes.flatMap(({ marks }) => marks).find(({ kind }) => kind === "crash")
    if (crash === undefined) return undefined
    const next = worked(history).find(({ from }) => from > crash.at)
    if (next === undefined) return undefined
    const held = history.tenures.find(({ from, to }) => from <= crash.at && (to === undefined || to > crash.at))
    const times = history.events.flatMap((event) =>
      event._tag === "Command" && event.at >= held!.to! - 100 && event.at <= next.from + 500 ? [event.at] : []
    )
    return times.every((at, index) => (times[index + most] ?? Infinity) - at >= 100)
  }
})

const ownedAt = (history: History, at: number, names?: ReadonlyArray<string>) =>
  history.lanes.filter(({ name }) => names === undefined || names.includes(name)).map(({ counts }) =>
    counts.findLast((count) => count.at <= at)?.count ?? 0
  )

const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((total, one) => total + one, 0)

/** Counts the owned data streams at two instants, `from` and `to`, in virtual milliseconds. */
export const allStreamsOwned = (count: number, from: number, to: number): Claim => ({
  text: `All ${count} data streams have an owner after ${from / 1000} s`,
  holds: (history) => {
    if (history.now < from) return undefined
    if (sum(ownedAt(history, from)) !== count) return false
    if (history.now < to) return undefined
    return sum(ownedAt(history, to)) === count
  }
})

export const balancedAtEnd = (count: number, names: ReadonlyArray<string>, at: number): Claim => ({
  text: "At the end, the data streams are shared evenly",
  holds: (history) => {
    if (history.now < at) return undefined
    const owned = ownedAt(history, at, names)
    return sum(owned) === count && Math.max(...owned) - Math.min(...owned) <= 1
  }
})
