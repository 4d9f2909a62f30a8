/** How many mutexes a layer remembers. */
import { assert, it } from "@effect/vitest"
import { LatestNames } from "../../src/internal/mutex/latestNames.ts"

it("the latest ten thousand names are remembered", () => {
  const names = new LatestNames()
  for (let i = 0; i < 10_000; i++) names.add(`m ${i}`)
  assert.isTrue(names.has("m 0"))
  names.add("m 9999")
  assert.isTrue(names.has("m 0"), "the name was remembered")
  names.add("m 10000")
  assert.deepStrictEqual(["m 0", "m 1", "m 10000"].map((name) => names.has(name)), [false, true, true])
  assert.deepStrictEqual([names.delete("m 1"), names.delete("m 1"), names.has("m 1")], [true, false, false])
})
