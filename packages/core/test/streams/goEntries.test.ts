/**
 * Tests when another consumer may take a Go consumer's entry: if it is unlocked, and either was locked at an earlier
 * sweep or has been idle for 40 seconds.
 */
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, type Pending } from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { GoEntries } from "../../src/streams/internal/goEntries.ts"

const entry = EntryId.make("1-0")

const pending = (fields: { consumer?: string; deliveries?: number; idle?: number; lease?: string } = {}): Pending => ({
  consumer: ConsumerName.make(fields.consumer ?? "redis-consumer-go"),
  content: { _tag: "Announced", entry, stream: StreamName.make("s"), info: {} },
  deliveries: fields.deliveries ?? 1,
  idle: Duration.millis(fields.idle ?? 5000),
  goConsumer: { lease: fields.lease }
})

const locked = pending({ lease: "redis-consumer-go" })

describe("Go consumers' entries", () => {
  it("an entry is left alone for 40 seconds if it was never found locked", () => {
    const entries = new GoEntries()
    assert.isFalse(entries.mayTake(pending()))
    assert.isFalse(entries.mayTake(pending({ idle: 39_999 })))
    assert.isTrue(entries.mayTake(pending({ idle: 40_000 })))
  })

  it("an entry is left alone while it is locked, and may be taken once it is unlocked", () => {
    const entries = new GoEntries()
    assert.isFalse(entries.mayTake(locked))
    assert.isFalse(entries.mayTake(pending({ lease: "redis-consumer-go", idle: 90_000 })))
    assert.isTrue(entries.mayTake(pending()))
  })

  it.each([
    ["the same consumer again", { deliveries: 2 }],
    ["another consumer", { consumer: "redis-consumer-go-2" }]
  ])("an earlier lock no longer counts after the entry has been delivered to %s", (_, fields) => {
    const entries = new GoEntries()
    entries.mayTake(locked)
    assert.isFalse(entries.mayTake(pending(fields)))
  })

  it("a lock does not count if it is held by an owner other than the entry's consumer", () => {
    const entries = new GoEntries()
    assert.isFalse(entries.mayTake(pending({ lease: "simba-consumer-ours@@s00000000000.1" })))
    assert.isFalse(entries.mayTake(pending()))
  })

  it("an entry is forgotten if a sweep that stopped early covered its id without finding it", () => {
    const entries = new GoEntries()
    entries.mayTake(locked)
    entries.endSweep(EntryId.make("2-0"))
    entries.endSweep(EntryId.make("0-9"))
    assert.strictEqual(entries.known(entry), locked.content)
    entries.endSweep(entry)
    assert.isUndefined(entries.known(entry))
  })

  it("an entry is forgotten if a complete sweep does not find it", () => {
    const entries = new GoEntries()
    entries.mayTake(locked)
    entries.endSweep()
    assert.strictEqual(entries.known(entry), locked.content)
    entries.mayTake(pending())
    entries.endSweep()
    entries.endSweep()
    assert.isUndefined(entries.known(entry))
    assert.isFalse(entries.mayTake(pending()))
  })
})
