/**
 * Tests how a reader's position is compared with the extent of its data stream, on random histories and on examples.
 */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Extent } from "@effect-simba/core/streams/StreamState"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Random } from "effect"
import * as readPosition from "../../src/streams/internal/readPosition.ts"

const id = (n: number) => EntryId.make(`${n}-0`)

/**
 * A data stream that can be trimmed, and to which messages can be added and from which they can be deleted
 * individually.
 */
class Model {
  readonly left: Array<number> = []
  private added = 0
  private lastDeleted = 0

  add() {
    this.left.push(++this.added)
  }

  trim(count: number) {
    this.left.splice(0, Math.max(0, this.left.length - count))
  }

  delete(index: number) {
    this.lastDeleted = Math.max(this.lastDeleted, ...this.left.splice(index, 1))
  }

  get extent(): Extent {
    const { added, lastDeleted, left } = this
    const [first] = left
    return {
      length: left.length,
      last: id(added),
      first: first === undefined ? undefined : id(first),
      added,
      lastDeleted: id(lastDeleted)
    }
  }
}

describe("a reader's position", () => {
  it.effect.each(Array.from({ length: 200 }, (_, seed) => seed))(
    "history %d: every added message is read or reported as missing exactly once",
    (seed) =>
      Effect.gen(function*() {
        const model = new Model()
        const observed = new Set<number>()
        let position = readPosition.at(readPosition.beginning)
        let missing = 0
        const check = () => {
          const verdict = readPosition.check(position, model.extent)
          position = verdict.position
          if (verdict.missing === undefined) return
          const count = Option.getOrThrow(verdict.missing.count)
          const [after, until] = [verdict.missing.after, verdict.missing.until].map((id) => Number(id.split("-")[0]))
          assert.isAbove(count, 0)
          const unseen = Array.from({ length: until! - after! }, (_, i) => after! + 1 + i).filter((n) =>
            !observed.has(n)
          )
          assert.isAtLeast(unseen.length, count)
          missing += count
        }
        for (let step = 0; step < 60; step++) {
          const act = yield* Random.nextIntBetween(0, 6)
          const size = yield* Random.nextIntBetween(0, 8)
          if (act <= 1) { for (let i = 0; i < size; i++) model.add() }
          else if (act === 2) model.trim(size)
          else if (act === 3) model.delete(size)
          else if (act === 4) check()
          else {
            const after = Number(position.after.split("-")[0])
            const found = model.left.filter((n) => n > after).slice(0, size)
            for (const n of found) {
              assert.isFalse(observed.has(n))
              observed.add(n)
            }
            const last = found.at(-1)
            if (last !== undefined) position = { ...position, after: id(last), offset: position.offset! + found.length }
          }
        }
        // Read the remaining messages
        check()
        const after = Number(position.after.split("-")[0])
        const rest = model.left.filter((n) => n > after)
        for (const n of rest) observed.add(n)
        const last = rest.at(-1)
        if (last !== undefined) position = { ...position, after: id(last), offset: position.offset! + rest.length }
        const { last: end } = model.extent
        if (end === position.after || model.left.length === 0) {
          check()
          assert.strictEqual(observed.size + missing, model.extent.added)
        }
      }).pipe(Random.withSeed(`position ${seed}`))
  )

  it.effect.each(Array.from({ length: 300 }, (_, seed) => seed))(
    "history %d: a reader that starts before or after the checkpoint counts the missing messages",
    (seed) =>
      Effect.gen(function*() {
        const draw = (end: number) => Random.nextIntBetween(0, end)
        const model = new Model()
        const left = (from: number, to: number) => model.left.filter((n) => n > from && n <= to).length
        for (let i = 0; i < 20; i++) model.add()
        for (let i = yield* draw(3); i > 0; i--) model.delete(yield* draw(5))
        if (yield* Random.nextBoolean) model.trim(10 + (yield* draw(10)))
        // The earlier reader received the remaining messages, and may not have reported a gap
        const checkpoint = { id: id(10), offset: left(0, 10) + (yield* draw(1)) * (10 - left(0, 10)) }
        const hidden = 10 - checkpoint.offset
        const start = 5 + (yield* draw(11))
        for (let i = yield* draw(3); i > 0; i--) model.delete(yield* draw(model.left.length))
        if (yield* Random.nextBoolean) model.trim(yield* draw(20))
        const { extent } = model
        const bounds = [start, 10].sort((a, b) => a - b) as [number, number]
        const counted = { ...extent, counted: left(...bounds) }
        const isKnown = yield* Random.nextBoolean
        const begun = readPosition.beside(
          id(start),
          isKnown ? checkpoint : { ...checkpoint, offset: undefined },
          counted
        )
        assert.deepStrictEqual(begun.after, id(start))
        const verdict = readPosition.check(begun, { ...extent, counted: left(start, Infinity) })
        const isTrimmed = (model.left[0] ?? Infinity) > start
        const missing = verdict.missing?.count ?? Option.some(0)
        if (isTrimmed && start < 10) assert.isTrue(Option.isNone(missing))
        else if (!isKnown) {
          const isMissing = isTrimmed || left(start, 20) < 20 - start
          assert.deepStrictEqual(missing, isMissing ? Option.none() : Option.some(0))
        } else {
          const count = Option.getOrThrow(missing)
          // At least the messages that are missing from the checkpoint's offset, and at most all deleted messages
          assert.isAtLeast(count, start < 10 ? hidden - (10 - start - left(start, 10)) : hidden)
          assert.isAtMost(count, 20 - model.left.length)
          if (start >= 10) assert.strictEqual(count, hidden + (20 - 10 - left(10, Infinity)))
        }
        assert.strictEqual(verdict.position.offset, 20 - left(start, Infinity))
      }).pipe(Random.withSeed(`beginning ${seed}`))
  )

  it("without an offset, missing messages are detected but not counted, and the offset is determined", () => {
    const extent = { length: 2, last: id(9), first: id(8), added: 9, lastDeleted: id(0) }
    const at = (after: number) => ({ after: id(after), offset: undefined, checked: id(after) })
    assert.deepStrictEqual(readPosition.check(at(5), extent), {
      position: { after: id(5), offset: 7, checked: id(5) },
      missing: { after: id(5), until: id(8), count: Option.none() }
    })
    assert.deepStrictEqual(readPosition.check(at(8), extent), {
      position: { after: id(8), offset: 8, checked: id(8) },
      missing: undefined
    })
    const longer = { ...extent, length: 3, last: id(10), added: 10 }
    assert.deepStrictEqual(readPosition.check(at(9), longer), { position: at(9), missing: undefined })
    assert.strictEqual(readPosition.check(at(9), { ...longer, counted: 1 }).position.offset, 9)
    assert.deepStrictEqual(readPosition.check(at(9), extent), {
      position: { after: id(9), offset: 9, checked: id(9) },
      missing: undefined
    })
    // Even if only the message at the position was deleted individually, others may have been trimmed
    assert.isDefined(readPosition.check(at(5), { ...extent, lastDeleted: id(5) }).missing)
    // The stream was recreated, because nothing was ever deleted from it
    assert.isUndefined(readPosition.check(at(5), { ...extent, added: 2 }).missing)
  })

  it("if a data stream is trimmed past a start before the checkpoint, the gap includes what earlier owners missed", () => {
    const extent = { length: 2, last: id(9), first: id(8), added: 9, lastDeleted: id(3), counted: 0 }
    // Message 3 is missing from the checkpoint's offset
    const begun = readPosition.beside(id(5), { id: id(6), offset: 5 }, extent)
    assert.deepStrictEqual(readPosition.check(begun, extent).missing, {
      after: id(0),
      until: id(8),
      count: Option.none()
    })
  })

  it("a checkpoint beyond the last message is from a deleted data stream, so the offset stays unknown", () => {
    const extent = { length: 8, last: id(8), first: id(1), added: 8, lastDeleted: id(0), counted: 3 }
    assert.deepStrictEqual(readPosition.beside(id(5), { id: id(50), offset: 50 }, extent), {
      after: id(5),
      offset: undefined,
      checked: id(5)
    })
  })

  it("the reported range ends at the position, unless a message after the position was deleted", () => {
    const position = { after: id(5), offset: 3, checked: id(2) }
    const extent = { length: 7, last: id(9), first: id(1), added: 9, counted: 4 }
    const untilOf = (lastDeleted: number) =>
      readPosition.check(position, { ...extent, lastDeleted: id(lastDeleted) }).missing
    assert.deepStrictEqual(untilOf(5), { after: id(2), until: id(5), count: Option.some(2) })
    assert.deepStrictEqual(untilOf(6), { after: id(2), until: id(9), count: Option.some(2) })
  })

  it("the reported range ends at the position, even if only one message after it is left", () => {
    const position = { after: id(5), offset: 3, checked: id(2) }
    const extent = { length: 6, last: id(9), first: id(1), added: 9, counted: 1, lastDeleted: id(5) }
    assert.deepStrictEqual(readPosition.check(position, extent).missing, {
      after: id(2),
      until: id(5),
      count: Option.some(5)
    })
  })

  it("a data stream of unknown origin counts as recreated unless it extends to its checkpoint", () => {
    const extent = { length: 3, last: id(3), first: id(1), added: 3, lastDeleted: id(0) }
    assert.isTrue(readPosition.isRewritten(undefined, undefined, extent))
    assert.isFalse(readPosition.isRewritten(undefined, { id: id(2), offset: 2 }, extent))
  })

  it("offsets start from zero if a stream is recreated with larger ids", () => {
    const position = { after: id(100), offset: 100, checked: id(100) }
    const extent = { length: 2, last: id(105), first: id(104), added: 2, lastDeleted: id(0) }
    assert.deepStrictEqual(readPosition.check(position, extent), {
      position: { after: id(100), offset: 0, checked: id(100) },
      missing: undefined
    })
    assert.deepStrictEqual(readPosition.check(position, { ...extent, added: 5 }).missing, {
      after: id(100),
      until: id(104),
      count: Option.some(3)
    })
    // If a stream lost its newest messages in a failover, counting continues
    const lost = { length: 60, last: id(100), first: id(41), added: 98, lastDeleted: id(0) }
    assert.deepStrictEqual(readPosition.check(position, lost), {
      position: { after: id(100), offset: 98, checked: id(100) },
      missing: undefined
    })
  })
})
