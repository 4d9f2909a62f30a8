/**
 * Compares the engine with a separate redis-server on a few thousand random commands from fixed seeds. To investigate a
 * difference, run `pnpm differential --seed S`. Once the bug is fixed, add the case to `examples.ts`.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { loadLua } from "../../src/internal/lua/vm.ts"
import { toPlain } from "./comparison.ts"
import { examples, initialSettings } from "./examples.ts"
import { overSocket } from "./overSocket.ts"
import type { RealServer } from "./realServer.ts"
import { startServer, versionOf } from "./realServer.ts"
import { open } from "./resp.ts"
import * as runner from "./runner.ts"

const SEEDS = [1, 2, 3, 4, 5]
const CASES = 1000

describe("the engine and redis-server", () => {
  let server: RealServer | undefined

  beforeAll(async () => {
    server = await startServer()
  })

  afterAll(() => server?.stop())

  for (const seed of SEEDS) {
    it(`agree on random commands with seed ${seed}`, async () => {
      const connection = await open(server!.path)
      const { comparisons, differences } = await runner.run(
        connection,
        runner.engineFake(await loadLua(), seed),
        seed,
        CASES
      )
      const version = await versionOf(connection)
      connection.close()
      assert.isAtLeast(comparisons, CASES)
      if (differences.length === 0) return
      const shown = differences.map((difference) => runner.describe(difference)).join("\n")
      assert.fail(`${differences.length} unexplained differences from redis-server ${version}\n${shown}`)
    })
  }

  it("agree on random commands over a socket", async () => {
    const connection = await open(server!.path)
    const { comparisons, differences } = await overSocket(connection, server!.path, 6, 2000)
    connection.close()
    assert.isAtLeast(comparisons, 2000)
    assert.deepStrictEqual(differences.map((difference) => runner.describe(difference)), [])
  })

  it("redis-server returns the replies in the examples", async () => {
    const connection = await open(server!.path)
    for (const [name, commands, expected] of Object.values(examples).flat()) {
      await connection.send([initialSettings, ["FLUSHALL"], ["SELECT", "0"], ["UNWATCH"]])
      const results = await connection.send(commands)
      assert.deepStrictEqual(toPlain(results.at(-1)!), expected, name)
      await connection.send([["DISCARD"]])
    }
    connection.close()
  })
})
