/** The diagram of docs/protocol.md and the code say the same about the states of a data stream at its owner. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { after, type OwnedState, transitions } from "../../src/streams/internal/ownedState.ts"

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
