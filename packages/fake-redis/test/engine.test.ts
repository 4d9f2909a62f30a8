import { assert, describe, it } from "@effect/vitest"
import { examples } from "./differential/examples.ts"
import { makeFixture } from "./differential/fixture.ts"

describe.each(Object.entries(examples))("the engine returns redis-server's reply: %s", (_, rows) => {
  for (const [name, commands, expected] of rows) {
    it(name, () => {
      const { peer } = makeFixture()
      const { run } = peer()
      let reply: unknown
      for (const args of commands) reply = run(...args)
      assert.deepStrictEqual(reply, expected)
    })
  }
})
