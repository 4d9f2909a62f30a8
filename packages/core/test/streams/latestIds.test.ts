/** Tests which ids a reader remembers, and how it uses them after a failover. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert, it } from "@effect/vitest"
import { isTime, LatestIds } from "../../src/streams/internal/latestIds.ts"

const start = 1_750_000_000_000
const id = (n: number) => EntryId.make(`${start + n}-0`)
const messages = (...ns: ReadonlyArray<number>) => ns.map((n) => ({ id: id(n), fields: [] }))
const extent = (first: number, last: number, lastDeleted = -1) => ({
  length: 1,
  first: id(first),
  last: id(last),
  added: 1,
  lastDeleted: id(lastDeleted)
})
const before = (n: number) => EntryId.make(`${start + n - 1}-18446744073709551615`)

const latestIds = (...ns: ReadonlyArray<number>) => {
  const latestIds = new LatestIds()
  latestIds.add(messages(...ns))
  return latestIds
}

it("`keep` drops all but the oldest ids", () => {
  const ids = latestIds(1, 2, 3)
  assert.deepStrictEqual(ids.range(extent(1, 3)), { after: before(1), count: 6 })
  ids.keep(2)
  assert.deepStrictEqual(ids.range(extent(1, 3)), { after: before(1), count: 4 })
  assert.strictEqual(ids.countRead(messages(1, 2, 3)), 2)
  ids.keep(0)
  assert.isUndefined(ids.range(extent(1, 3)))
})

it("`range` is undefined if the message with the oldest id may have been deleted, or if that id was chosen by a producer", () => {
  const ids = latestIds(5, 6)
  assert.isDefined(ids.range(extent(5, 5)))
  assert.isUndefined(ids.range(extent(6, 9)))
  assert.isUndefined(ids.range(extent(1, 4)))
  assert.isUndefined(ids.range(extent(1, 9, 5)))
  assert.isDefined(ids.range(extent(1, 9, 4)))
  assert.isUndefined(ids.range({ ...extent(1, 9), first: undefined }))
  assert.isUndefined(ids.range({ ...extent(1, 9), lastDeleted: undefined }))
  const own = new LatestIds()
  own.add([{ id: EntryId.make("5-0"), fields: [] }])
  const small = { ...extent(1, 9), first: EntryId.make("1-0"), lastDeleted: EntryId.make("0-0") }
  assert.isUndefined(own.range({ ...small, last: EntryId.make("9-0") }))
})

it("`countRead` counts messages up to the first difference", () => {
  assert.strictEqual(latestIds(1, 2, 3).countRead(messages(1, 2, 4)), 2)
  assert.strictEqual(latestIds(1, 2, 3).countRead(messages(2, 3)), 0)
  assert.strictEqual(latestIds(1, 2, 3).countRead([]), 0)
})

it("`add` keeps the latest ten ids and, up to a total of a thousand, all ids from the last ten seconds", () => {
  const countOf = (ids: LatestIds, first: number) => ids.range(extent(first, 1e6))!.count / 2
  const slow = Array.from({ length: 30 }, (_, i) => i * 20_000)
  assert.strictEqual(countOf(latestIds(...slow), 0 + slow[20]!), 10)
  const steady = Array.from({ length: 30 }, (_, i) => i * 1000)
  assert.strictEqual(countOf(latestIds(...steady), steady[19]!), 11)
  const fast = Array.from({ length: 1500 }, (_, i) => i)
  assert.strictEqual(countOf(latestIds(...fast), 500), 1000)
})

it("an id counts as a timestamp if it falls in or after September 2001", () => {
  assert.deepStrictEqual(
    ["5-0", "1000000000000-0", "1000000000001-0", "1750000000000-7"].map((id) => isTime(EntryId.make(id))),
    [false, false, true, true]
  )
})
