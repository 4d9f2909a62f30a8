/** Tests the order in which members try to take an orphan, and which member reaps. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, type Member } from "@effect-simba/core/streams/StreamStore"
import { assert, it } from "@effect/vitest"
import { isFirst, rank } from "../../src/streams/internal/memberOrder.ts"

const member = (name: string, owned = 0, capacity = 10): Member => ({
  consumer: ConsumerName.make(`simba-consumer-${name}`),
  session: `session-${name}`,
  capacity,
  owned
})

const entries = Array.from({ length: 300 }, (_, i) => EntryId.make(`${i + 1}-0`))

it("members agree on the order for each entry, and each member is first for a roughly equal share of the entries", () => {
  const members = ["a", "b", "c", "d"].map((name) => member(name))
  const firsts = new Map<number, number>()
  for (const entry of entries) {
    const ranks = members.map(({ session }) => rank(members, session, entry)!)
    assert.deepStrictEqual([...ranks].sort(), [0, 1, 2, 3])
    const first = ranks.indexOf(0)
    firsts.set(first, (firsts.get(first) ?? 0) + 1)
  }
  for (const count of firsts.values()) assert.isAbove(count, entries.length / 8)
  assert.strictEqual(firsts.size, 4)
})

it("full members do not delay others, and a consumer has no rank until it is a member", () => {
  const [a, b, full, over] = [member("a"), member("b", 9), member("c", 10), member("d", 11)]
  for (const entry of entries) {
    const ranks = [a, b].map(({ session }) => rank([a, b, full, over], session, entry))
    assert.deepStrictEqual([...ranks].sort(), [0, 1])
    // Full members have a rank too
    assert.isAtMost(rank([a, b, full, over], full.session, entry)!, 2)
    assert.isUndefined(rank([a, b], full.session, entry))
  }
  assert.isTrue(entries.some((entry) => rank([a, b, full, over], full.session, entry) === 2))
})

it("exactly one consumer is first, even if two sessions have the same name", () => {
  const members = [member("b"), member("a"), { ...member("a"), session: "other" }]
  assert.isTrue(isFirst(members, members[1]!.consumer))
  assert.isFalse(isFirst(members, members[0]!.consumer))
})

it("the order never changes between versions, so that members running different versions agree on it", () => {
  const members = ["a", "b", "c", "d"].map((name) => member(name))
  const orders = Array.from({ length: 24 }, (_, i) => {
    const entry = EntryId.make(`${1_750_000_000_001 + i}-0`)
    return members.map(({ session }) => rank(members, session, entry)).join("")
  })
  assert.strictEqual(
    orders.join(" "),
    "2013 3012 1230 1032 3210 0312 3201 2031 1023 3201 1023 3210 " +
      "3201 3012 0312 3120 0132 0231 2013 2103 3012 0213 2013 1023"
  )
})

it("members with equal hashes for an entry are both first, and otherwise even the lowest bits of the hashes count", () => {
  const entry = EntryId.make("1-0")
  const ranks = (...sessions: ReadonlyArray<string>) => {
    const members = sessions.map((session) => ({ ...member("a"), session }))
    return sessions.map((session) => rank(members, session, entry))
  }
  assert.deepStrictEqual(ranks("session-rlbcxtrvj", "session-11gogpf9cd"), [0, 0])
  assert.deepStrictEqual(ranks("session-yjy", "session-3so"), [1, 0])
  assert.deepStrictEqual(ranks("session-h47", "session-22ct"), [1, 0])
})
