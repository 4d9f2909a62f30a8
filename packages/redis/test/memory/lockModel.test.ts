/** The simulator's model of the mutex scripts, which infers who requested, queued for, released or lost a mutex. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as lockModel from "../../src/internal/mutex/lockModel.ts"

const { asked, channel, forced, keep, line, queued, released } = lockModel.make(["m", "n"])

const keysOf = (resource: string) =>
  ["", ":contender", ":fence", ":reserved"].map((part) => `simba:{${resource}}${part}`)

const call = (resource: string, code: string, ...own: ReadonlyArray<string>) => [
  ...["EVALSHA", "sha", "4", ...keysOf(resource), `${code} 1 4500 500`],
  ...own
]

const [one, other] = ["1-aaaaaaaaaaaa:p", "2-aaaaaaaaaaaa:p"]

const refused = (ticket: number) => ["them@@400", ticket, 0, 0, 5, 7]

describe("the simulator's model of mutexes", () => {
  it("recognizes who requests which mutex, even as part of a release", () => {
    assert.deepInclude(asked(call("m", "w", one), [])[0], { resource: "m", id: one })
    assert.deepInclude(asked(call("n", "a", one, "try", "4500", "500", ""), [])[0], { resource: "n" })
    const requeueing = asked(call("m", "d", one, "500", "4500", other, "4500"), [])
    assert.lengthOf(requeueing, 1)
    assert.deepInclude(requeueing[0], { resource: "m", id: other })
    assert.deepStrictEqual(asked(call("m", "r", one), []), [])
    assert.deepStrictEqual(asked(call("foreign", "w", one), []), [])
  })

  it("reads places from refusals and requeuing releases, but not from grants, tries or errors", () => {
    const place = [{ resource: "m", id: one, place: 12_000_001 }]
    assert.deepStrictEqual(queued(call("m", "w", one), refused(12_000_001)), place)
    assert.deepStrictEqual(queued(call("m", "t", one), refused(0)), [])
    assert.deepStrictEqual(queued(call("m", "w", one), "1700"), [])
    assert.deepStrictEqual(queued(call("m", "w", one), ["error", "12.000001"]), [])
    // A reply of three items means a place for an acquire, but a grant for a release
    assert.deepStrictEqual(queued(call("m", "w", one), ["them@@400", 12_000_001, 0]), place)
    const requeue = call("m", "q", other, one)
    assert.deepStrictEqual(queued(requeue, ["@@", 12_000_001, 0, 5, 7]), place)
    assert.deepStrictEqual(queued(requeue, ["@@", 12_000_001, "1700"]), [])
    assert.deepStrictEqual(queued(call("m", "r", one), refused(12_000_001)), [])
    assert.deepStrictEqual(queued(call("foreign", "w", one), refused(12_000_001)), [])
    // Only a call with several operations has a list of replies
    assert.deepStrictEqual(queued(call("m", "rW", other, one), [1, refused(12_000_001)]), place)
  })

  it("recognizes who released, unless the release failed", () => {
    assert.deepInclude(released(call("m", "r", one), 1)![0], { resource: "m", id: one })
    assert.isUndefined(released(call("m", "r", one), new Error("READONLY")))
    assert.deepStrictEqual(released(call("m", "w", one), "@@"), [])
  })

  it("recognizes from whom a forced release took a mutex, and ignores other scripts", () => {
    const force = (id: string) => ["EVALSHA", "sha", "4", ...keysOf("m"), "500", "1", id]
    // Ids may contain the separator
    for (const id of [one, "a@@b", "a"]) {
      assert.deepStrictEqual(forced(force(id), `${id}@@400`), [{ resource: "m", id }])
      assert.deepStrictEqual(forced(force("other"), `${id}@@400`), [])
    }
    for (const nobody of ["@@", null, ["a@@400"], new Error("READONLY")]) {
      assert.deepStrictEqual(forced(force(""), nobody), [])
      assert.deepStrictEqual(forced(force("a"), nobody), [])
    }
    assert.deepStrictEqual(forced([...force(one), "more"], `${one}@@400`), [])
    assert.deepStrictEqual(forced(force(one).with(2, "3"), `${one}@@400`), [])
    assert.deepStrictEqual(forced(force(one).with(3, "simba:{foreign}"), `${one}@@400`), [])
  })

  it("distinguishes effect-simba layers from Simba contenders in channels and lines", () => {
    assert.strictEqual(channel("m", one), "simba:inbox:aaaaaaaaaaaa")
    assert.strictEqual(channel("m", "1:1@host"), "simba:{m}:1:1@host")
    assert.strictEqual(line(one), line(other))
    assert.notStrictEqual(line(one), line("1-bbbbbbbbbbbb:p"))
    assert.strictEqual(line("1:1@host"), "1:1@host")
  })

  it("lets only keys with an expiry remain", () => {
    for (const key of ["simba:{m}:fence", "simba:{n}:contender", "simba:{m}:jobs"]) {
      assert.isTrue(keep(key, true), key)
      assert.isFalse(keep(key, false), key)
    }
    assert.isFalse(keep("simba:{m}", true))
    assert.isFalse(keep("simba:{other}:fence", true))
  })

  it.effect("limits a waiter's sleep to two confirm periods plus a retry, and another lease after a loss", () =>
    Effect.gen(function*() {
      const periods = { ttl: 10_000, transition: 6000, confirmTimeout: 1500, commandTimeout: 1000 }
      const bounds = yield* lockModel.bounds(periods)
      assert.deepStrictEqual(
        [bounds.sleepBound, bounds.sleepBoundAfterLoss, bounds.recovery].map(Duration.toMillis),
        [3700, 19_700, 2200]
      )
    }))
})
