/** Reads hand-offs from the contenders' logs. */
import type { Contended, Holding } from "./contestant.ts"

export interface HandOffs {
  /** The times from just before a release is sent until the next contender has the mutex. */
  readonly millis: ReadonlyArray<number>
  /** The number of times that a contender acquired the mutex twice in a row, which is not a hand-off. */
  readonly kept: number
  /** The number of times that a contender acquired the mutex before the previous owner had released it. */
  readonly overlaps: number
  /** The number of times that the mutex was held and released. */
  readonly held: number
  readonly failures: number
}

/** Returns the hand-offs of one mutex from the logs of all processes that contend for it. */
export const handOffs = (logs: ReadonlyArray<Contended>): HandOffs => {
  const holdings = logs
    .flatMap(({ holdings }, process) =>
      holdings.map((holding): readonly [string, Holding] => [
        `${process} ${holding[0]}`,
        holding
      ])
    )
    .sort(([, a], [, b]) => a[1] - b[1])
  const millis: Array<number> = []
  let kept = 0
  let overlaps = 0
  for (let i = 1; i < holdings.length; i++) {
    const [before, [, , releasedAt]] = holdings[i - 1]!
    const [after, [, grantedAt]] = holdings[i]!
    if (grantedAt < releasedAt) overlaps++
    else if (before === after) kept++
    else millis.push((grantedAt - releasedAt) / 1000)
  }
  return {
    millis,
    kept,
    overlaps,
    held: holdings.length,
    failures: logs.reduce((sum, { failures }) => sum + failures, 0)
  }
}
