/** Evaluates the history: who owned each stream, and whether the demo's claims hold. */
import { all, type History, isDone, ownersOf, startOf, takeovers } from "./history.ts"
import * as plan from "./plan.ts"

const seconds = (millis: number) => `${(millis / 1000).toFixed(1)} s`

const streamsOf = (history: History) => [...new Set(all(history, "Announced").map(({ stream }) => stream))].sort()

export const summary = (history: History): ReadonlyArray<string> => {
  const start = startOf(history)
  const owners = streamsOf(history).map((stream) => {
    const each = ownersOf(history, stream)
      .map(({ from, messages, who }) => `${who} from ${seconds(from - start)} (${messages.length})`)
    return `  ${stream}: ${each.join(", ")}`
  })
  const [killed] = all(history, "Killed")
  const delays = takeovers(history)
    .flatMap(({ next }) => killed === undefined || next === undefined ? [] : [next.from - killed.at])
    .sort((a, b) => a - b)
  return [
    "The owners of each stream, and how many messages each processed:",
    ...owners,
    ...delays.length === 0 ? [] : [
      `Crash: others took over ${delays.length} of ${plan.killed}'s streams, ` +
      `${seconds(delays[0]!)} to ${seconds(delays.at(-1)!)} later`
    ]
  ]
}

/**
 * Whether each message was processed at least once and in order. A new owner repeats the messages that its predecessor
 * did not commit.
 */
const isComplete = (inOrder: History, stream: string): boolean => {
  let last = 0
  for (const processed of all(inOrder, "Processed")) {
    if (processed.stream !== stream) continue
    if (processed.n > last + 1) return false
    last = Math.max(last, processed.n)
  }
  return last === plan.messages
}

/**
 * Whether tokens are unique and grow: nobody acquires or processes a stream once an owner with a larger token has it.
 */
const tokensGrow = (inOrder: History, stream: string): boolean => {
  const uses = inOrder
    .filter((event) => event._tag === "Taken" || event._tag === "Processed")
    .filter((event) => event.stream === stream)
  return uses.slice(1).every(({ token, who }, index) => {
    const before = uses[index]!
    return token > before.token || (token === before.token && who === before.who)
  })
}

/** The demo's claims. The exit code is 0 only if all of them hold. */
export const checks = (history: History): ReadonlyArray<readonly [claim: string, holds: boolean]> => {
  const streams = streamsOf(history)
  // Events arrive in any order, because the director reads one pipe per process
  const inOrder = [...history].sort((a, b) => a.at - b.at)
  const left = takeovers(history)
  const ofEach = (holds: (inOrder: History, stream: string) => boolean) =>
    streams.length > 0 && streams.every((stream) => holds(inOrder, stream))
  return [
    [
      `${plan.producers.length * plan.streams} streams were announced, and all are done`,
      streams.length === plan.producers.length * plan.streams && isDone(history)
    ],
    ["every message was processed, in the order of its stream", ofEach(isComplete)],
    ["each stream's token grew with every owner", ofEach(tokensGrow)],
    [
      `${plan.killed} was killed while it owned ${left.length} streams, and each was taken over`,
      left.length > 0 && left.every(({ next }) => next !== undefined)
    ],
    ["no process failed", all(history, "Failed").length === 0]
  ]
}
