/** Hand-offs from the logs of contenders. */
import type { Contended, Holding } from "./contestant.ts"

export interface HandOffs {
  /** From the instant before the release is sent to the instant at which the next contender has it. */
  readonly millis: ReadonlyArray<number>
  /** How often the same contender had it twice in succession, so that nothing was handed over. */
  readonly kept: number
  /** How often a contender had it before the previous one had released it. */
  readonly overlaps: number
  /** How many contenders have had and released it. */
  readonly held: number
  readonly failures: number
}

/** Of one mutex, from the logs of all processes that contend for it. */
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
