/** How often a repeated fault triggers a reaction. */
import { assert, describe, it } from "@effect/vitest"
import { Pace } from "../../src/internal/client/ioredis/pace.ts"

/** When a fault that is reported at these times, in milliseconds, triggers a reaction. */
const reactions = (reports: ReadonlyArray<number>) => {
  const pace = new Pace()
  return reports.filter((at) => pace.isDue(at))
}

const every = (millis: number, until: number) => Array.from({ length: until / millis }, (_, i) => 10_000 + millis * i)

describe("reactions to a repeated fault", () => {
  it.each([1, 150, 600])("become rare if it is reported every %s ms", (millis) => {
    const times = reactions(every(millis, 12_000))
    assert.isAtMost(times.length, 11)
    for (const [i, at] of times.slice(-3).entries()) assert.isAtLeast(at - times.at(-4 + i)!, 1800)
  })

  it("are immediate again after two calm seconds", () => {
    const start = [10_000, 10_100, 10_300]
    // The next reaction has been due since 10,700
    assert.deepStrictEqual(reactions([...start, 12_700, 12_799, 12_800]), [...start, 12_700, 12_800])
    assert.deepStrictEqual(reactions([...start, 12_699, 12_799, 13_498, 13_499]), [...start, 12_699, 13_499])
  })
})
