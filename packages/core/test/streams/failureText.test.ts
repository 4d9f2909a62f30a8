/** Tests a failure's text, which becomes the reason for a dead letter. */
import { assert, it } from "@effect/vitest"
import { Cause } from "effect"
import { failureText } from "../../src/streams/internal/failureText.ts"

/** An error with this number of causes below it. */
const chain = (causes: number): Error =>
  causes === 0 ? new Error("e0") : new Error(`e${causes}`, { cause: chain(causes - 1) })

it("an error's text includes up to three of its causes", () => {
  assert.strictEqual(
    failureText(Cause.fail(chain(3))),
    "Error: e3 (cause: Error: e2 (cause: Error: e1 (cause: Error: e0)))"
  )
  assert.strictEqual(
    failureText(Cause.fail(chain(4))),
    "Error: e4 (cause: Error: e3 (cause: Error: e2 (cause: Error: e1)))"
  )
})

it("an interruption is named, and identical reasons are listed once", () => {
  assert.strictEqual(failureText(Cause.interrupt(1)), "interrupted")
  assert.strictEqual(failureText(Cause.combine(Cause.fail("busy"), Cause.die("busy"))), "busy")
})
