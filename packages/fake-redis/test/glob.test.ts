import { assert, describe, it } from "@effect/vitest"
import { globMatch } from "../src/internal/glob.ts"
import { makeFixture } from "./differential/fixture.ts"

/** A reference implementation that tries every length for each star. */
const matches = (pattern: string, text: string): boolean => {
  if (pattern === "") return text === ""
  if (pattern[0] === "*") {
    return matches(pattern.slice(1), text) || (text !== "" && matches(pattern, text.slice(1)))
  }
  return text !== "" && (pattern[0] === "?" || pattern[0] === text[0]) && matches(pattern.slice(1), text.slice(1))
}

const words = (alphabet: string, length: number): ReadonlyArray<string> =>
  length === 0 ? [""] : words(alphabet, length - 1).flatMap((word) => [word, ...[...alphabet].map((c) => word + c)])

describe("glob patterns", () => {
  it("match like the reference implementation", () => {
    const texts = new Set(words("ab", 5))
    texts.delete("")
    for (const pattern of new Set(words("ab*?", 5))) {
      for (const text of texts) {
        assert.strictEqual(globMatch(pattern, text), matches(pattern, text), `${pattern} against ${text}`)
      }
    }
  })

  it("with twenty stars match in reasonable time", () => {
    const { peer } = makeFixture()
    const { run } = peer()
    run("SET", "a".repeat(200), "1")
    assert.deepStrictEqual(run("KEYS", "a*".repeat(20) + "b"), [])
  })
})
