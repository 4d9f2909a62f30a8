// Runs type checks, tests, contracts, programs and simulator seeds on the packed packages with the newest `effect` on
// npm, even if the packages' peer range excludes it. Needs a finished `pnpm build` and a redis-server on the PATH.
//
//   node scripts/canary.mjs            the newest release
//   node scripts/canary.mjs 4.2.0      another version, or a tag such as `next`
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { pinned } from "./pack-check/consumer.mjs"
import { packedConsumer, temporaryFolder } from "./pack-check/packedConsumer.mjs"
import { mustHold, systemNode, writePrograms } from "./pack-check/programs.mjs"
import { withRedis } from "./pack-check/redisServer.mjs"
import { allWell, step } from "./pack-check/report.mjs"
import { simulate } from "./pack-check/simulations.mjs"
import { runTests, writeTests } from "./pack-check/tests.mjs"
import { checkTypes } from "./pack-check/types.mjs"

const version = process.argv[2] ?? "latest"
// Override the peer range: the point is to find out whether it could include this version
const { consumer, packed } = await packedConsumer(temporaryFolder(), { effect: version }, { effect: "$effect" })

const tryAll = async (redisUrl) => {
  await step("types", () => checkTypes(consumer, packed, ["typescript"]))
  await step("tests and contracts", () => {
    writeTests(consumer)
    return runTests(consumer, redisUrl)
  })
  await step("programs", async () => {
    writePrograms(consumer)
    const programs = ["out/program.js", "runtime/memory.mjs", "runtime/fake.mjs", "runtime/ioredis.mjs"]
    await mustHold(systemNode, consumer, programs, redisUrl)
  })
  await step("simulations", () => simulate(consumer, 20))
}

if (allWell()) await withRedis(tryAll)

const installed = (name) => JSON.parse(readFileSync(join(consumer, "node_modules", name, "package.json"), "utf8"))

if (allWell()) {
  const { peerDependencies } = installed("@effect-simba/core")
  console.log(
    `\nEverything passes with effect ${installed("effect").version}. The packages accept ${peerDependencies.effect}, ` +
      `and the workspace pins ${pinned.effect}.`
  )
}
