/** When an entry of a Go consumer may be taken: after its lock was seen, or after a long time. */
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

describe("an entry of a Go consumer", () => {
  it("is left alone while its lock was never seen, for 40 seconds", () => {
    const entries = new GoEntries()
    assert.isFalse(entries.mayTake(pending()))
    assert.isFalse(entries.mayTake(pending({ idle: 39_999 })))
    assert.isTrue(entries.mayTake(pending({ idle: 40_000 })))
  })

  it("is left alone while it is locked, and may be taken afterwards", () => {
    const entries = new GoEntries()
    assert.isFalse(entries.mayTake(locked))
    assert.isFalse(entries.mayTake(pending({ lease: "redis-consumer-go", idle: 90_000 })))
    assert.isTrue(entries.mayTake(pending()))
  })

  it.each([
    ["the same consumer again", { deliveries: 2 }],
    ["another consumer", { consumer: "redis-consumer-go-2" }]
  ])("starts over if it was delivered to %s", (_, fields) => {
    const entries = new GoEntries()
    entries.mayTake(locked)
    assert.isFalse(entries.mayTake(pending(fields)))
  })

  it("learns nothing about its consumer if the lock is another's", () => {
    const entries = new GoEntries()
    assert.isFalse(entries.mayTake(pending({ lease: "simba-consumer-ours@@s00000000000.1" })))
    assert.isFalse(entries.mayTake(pending()))
  })

  it("is known until a whole sweep does not find it", () => {
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
