import { assert, it } from "@effect/vitest"
import { Exit } from "effect"
import { reply } from "../../src/internal/lease/storeFailure.ts"

it("an exception from the store counts as its reply, but one from the code that handles the reply does not", () => {
  const replies: Array<Exit.Exit<string, unknown>> = []
  const done = (exit: Exit.Exit<string, unknown>) => void replies.push(exit)
  reply<string>(() => {
    throw new Error("store")
  }, done)
  assert.deepStrictEqual(replies.splice(0), [Exit.die(new Error("store"))])
  const handle = () =>
    reply<string>((done) => done(Exit.succeed("reply")), (exit) => {
      done(exit)
      throw new Error("handler")
    })
  assert.throws(handle, "handler")
  assert.deepStrictEqual(replies, [Exit.succeed("reply")])
})
