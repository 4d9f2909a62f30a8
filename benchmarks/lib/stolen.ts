/** Measures the CPU time that a virtual machine's host used for other machines, which slows down measurements. */
import { Effect } from "effect"
import { readFile } from "node:fs/promises"

interface Ticks {
  readonly stolen: number
  readonly all: number
}

/** Reads the machine's CPU times. Only Linux reports stolen time. */
const ticks = Effect.promise(async (): Promise<Ticks | undefined> => {
  const text = await readFile("/proc/stat", "utf8").catch(() => "")
  const [user, nice, system, idle, iowait, irq, softirq, stolen] =
    /^cpu +([\d ]+)$/m.exec(text)?.[1]?.split(" ").map(Number) ?? []
  return stolen === undefined
    ? undefined
    : { stolen, all: user! + nice! + system! + idle! + iowait! + irq! + softirq! + stolen }
})

/**
 * Adds the share of the machine's CPU time that was stolen during the work, or undefined if the system does not report
 * it.
 */
export const withStolen = <A, E, R>(
  work: Effect.Effect<A, E, R>
): Effect.Effect<readonly [result: A, stolen: number | undefined], E, R> =>
  Effect.gen(function*() {
    const before = yield* ticks
    const result = yield* work
    const after = yield* ticks
    if (before === undefined || after === undefined || after.all === before.all) return [result, undefined] as const
    return [result, (after.stolen - before.stolen) / (after.all - before.all)] as const
  })

/** Describes the stolen share. Returns undefined below one percent. */
export const inWords = (stolen: number | undefined): string | undefined =>
  stolen === undefined || stolen < 0.01 ? undefined : `${(100 * stolen).toFixed(0)}% of the CPU time was stolen`
