/** Unknown options for the promise API. */
import { createSimba, type Options } from "@effect-simba/redis/promise"
import { assert, it } from "@effect/vitest"
import { problemWith } from "../../src/internal/client/optionNames.ts"

it("the error for an unknown option lists the existing ones", () => {
  const names = { ttl: true, timeout: true } as const
  assert.isUndefined(problemWith(undefined, names))
  assert.isUndefined(problemWith({ ttl: undefined }, names))
  assert.strictEqual(
    problemWith({ ttl: 1, leaseTime: 2 }, names)?.message,
    `Configuration "leaseTime": it does not exist; the options are timeout, ttl.`
  )
  for (const options of [null, 5, "ttl"]) {
    assert.deepInclude(problemWith(options, names), { _tag: "InvalidConfig", option: "options" })
  }
})

it("`createSimba` refuses unknown options, including those inside `redis`, before connecting", async () => {
  const wrong = [{ leaseTime: 3 }, { redis: { comandTimeout: 1 } }, { connectTimeout: 3 }] as ReadonlyArray<
    object
  > as ReadonlyArray<Options>
  for (const options of wrong) {
    const error = await createSimba(options).then(() => undefined, (error: unknown) => error)
    assert.deepInclude(error, { _tag: "InvalidConfig" })
  }
})
