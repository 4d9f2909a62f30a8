/** What came of it: which streams changed hands, and whether nothing was lost. */
import type { History } from "./director.ts"
import * as plan from "./plan.ts"

type Of<T extends History[number][1]["_tag"]> = Extract<History[number][1], { readonly _tag: T }>

const all = <T extends History[number][1]["_tag"]>(history: History, tag: T) =>
  history.filter(([, said]) => said._tag === tag) as unknown as ReadonlyArray<readonly [at: number, said: Of<T>]>

const streamsOf = (history: History) => [...new Set(all(history, "Announced").map(([, { stream }]) => stream))].sort()

/** The owners of each stream, one after the other. */
export const summary = (history: History): ReadonlyArray<string> =>
  streamsOf(history).map((stream) => {
    const owners = all(history, "Taken").filter(([, taken]) => taken.stream === stream)
    return `  ${stream}: ${
      owners.map(([at, { who }]) => {
        const count = all(history, "Processed").filter(([, { stream: other, token }]) =>
          other === stream && owners.some(([, taken]) =>
            taken.who === who && taken.token === token
          )
        ).length
        return `${who} from ${(at / 1000).toFixed(1)} s (${count})`
      }).join(", ")
    }`
  })

const numbersOf = (history: History, stream: string) =>
  all(history, "Processed").filter(([, processed]) => processed.stream === stream)

/** Each message at least once, in order, whoever processed it: a repetition begins after the last commit. */
const isComplete = (history: History, stream: string): boolean => {
  let last = 0
  for (const [, { n }] of numbersOf(history, stream)) {
    if (n > last + 1) return false
    last = Math.max(last, n)
  }
  return last === plan.messages
}

const tokensGrow = (history: History, stream: string): boolean =>
  numbersOf(history, stream).every(([, { token }], index, list) => index === 0 || token >= list[index - 1]![1].token)

/** What the killed consumer worked on to the last: it had neither finished it nor given it back. */
const leftBehind = (history: History) =>
  all(history, "Taken").filter(([at, { stream, who }]) =>
    who === plan.killed &&
    !history.some(([later, said]) =>
      later > at && (said._tag === "Done" || said._tag === "GivenBack") && said.who === who && said.stream === stream
    )
  )

export const checks = (history: History): ReadonlyArray<readonly [claim: string, holds: boolean]> => {
  const streams = streamsOf(history)
  const left = leftBehind(history)
  return [
    [
      `${plan.producers.length * plan.streams} streams were announced, and all are done`,
      streams.length === plan.producers.length * plan.streams &&
      new Set(all(history, "Done").map(([, { stream }]) => stream)).size === streams.length
    ],
    ["every message was processed, in the order of its stream", streams.every((stream) => isComplete(history, stream))],
    ["the token of each stream grew with every owner", streams.every((stream) => tokensGrow(history, stream))],
    [
      `what ${plan.killed} had was taken over`,
      left.length > 0 &&
      left.every(([, { stream, token }]) =>
        all(history, "Taken").some(([, taken]) =>
          taken.stream === stream && taken.who !== plan.killed && taken.token > token
        )
      )
    ]
  ]
}
