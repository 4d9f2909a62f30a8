/** The diagram of docs/protocol.md and the code agree about the states of a data stream at its owner. */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import { StreamName } from "@effect-simba/core/streams"
import * as StreamStore from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { after, type OwnedState, transitions } from "../../src/streams/internal/ownedState.ts"
import { OwnedStream } from "../../src/streams/internal/ownedStream.ts"

const text = readFileSync(join(import.meta.dirname, "../../../../docs/protocol.md"), "utf8")

/** Arrows of the diagram: `from ── by ──▶ to`. */
const arrows = text.split("#### The states of an entry")[1]!.split("```")[3]!.split("\n").flatMap((line) => {
  const [, from, by, to] = /^(.+) ── (.+) ──▶ (.+)$/.exec(line) ?? []
  return from === undefined ? [] : from.split(", ").map((one) => `${one} ${by} ${to}`)
})

const names = Object.keys(transitions) as ReadonlyArray<keyof typeof transitions>

describe("The states of a data stream at its owner", () => {
  it("are those of the diagram", () => {
    const found = names.flatMap((name) =>
      Object.entries(transitions[name]).map(([from, to]) => `${from} ${name} ${to}`)
    )
    assert.deepStrictEqual(found.sort(), [...arrows].sort())
  })

  it("come to an end that nothing follows", () => {
    for (const state of ["ended", "lost"] satisfies ReadonlyArray<OwnedState>) {
      for (const name of names) assert.isUndefined(after(state, name))
    }
  })
})

describe("A data stream at its owner", () => {
  const member = {
    consumer: StreamStore.ConsumerName.make("simba-consumer-b"),
    session: "session00001",
    capacity: 1,
    owned: 0
  }
  const owned = () =>
    new OwnedStream({
      stream: StreamName.StreamName.make("orders:eu"),
      entry: StreamName.EntryId.make("1-0"),
      consumer: StreamStore.ConsumerName.make("simba-consumer-a"),
      epoch: StreamStore.Epoch.make("session00000.1"),
      token: 1 as FencingToken,
      info: {},
      failures: 0,
      source: "sweep",
      since: { monotonic: 0, wall: 0 },
      arrival: undefined
    }, {
      usable: 1000,
      margin: 100,
      renewAfter: 500,
      early: 250,
      maxHold: Infinity,
      progressTimeout: Infinity
    })
  const stateOf = (one: OwnedStream) => ({
    isRevoked: one.isRevoked,
    isStopped: one.isStopped,
    isFor: one.receiver?.consumer,
    isOpen: one.isOpen()
  })

  it("that is kept after a recall is as before, and may be recalled again", () => {
    const one = owned()
    for (let i = 0; i < 2; i++) {
      one.recall(member)
      assert.deepStrictEqual(stateOf(one), { isRevoked: true, isStopped: false, isFor: member.consumer, isOpen: true })
      one.keep()
      assert.deepStrictEqual(stateOf(one), { isRevoked: false, isStopped: false, isFor: undefined, isOpen: true })
    }
  })

  it("that is stopped is not kept, but belongs to no member any more", () => {
    const one = owned()
    one.recall(member)
    one.stop()
    one.keep()
    assert.deepStrictEqual(stateOf(one), { isRevoked: true, isStopped: true, isFor: undefined, isOpen: true })
  })

  it("that was revoked reports it after its end: a handler that cannot be interrupted may wait for it", () => {
    for (const end of [(one: OwnedStream) => one.lose("Expired"), (one: OwnedStream) => one.end("done")]) {
      for (const isRevoked of [false, true]) {
        const one = owned()
        if (isRevoked) one.revoke()
        end(one)
        assert.deepStrictEqual(stateOf(one), { isRevoked, isStopped: false, isFor: undefined, isOpen: false })
      }
    }
  })
})
