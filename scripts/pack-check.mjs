// Packs the packages as they would be published and uses them as a user would: installed with npm in an empty folder
// outside the repository. Needs a finished `pnpm build` and a redis-server on the PATH.
//
//   node scripts/pack-check.mjs                   what `npm test` runs
//   node scripts/pack-check.mjs --long            more seeds and compilers, all runtimes, and the install lines
//   node scripts/pack-check.mjs --long --write    also writes the table of runtimes into the documentation
import { join } from "node:path"
import { commandLine } from "./lib/commandLine.mjs"
import { checkBundles } from "./pack-check/bundles.mjs"
import { runCommandLines } from "./pack-check/commandLine.mjs"
import { installExamples, runOn } from "./pack-check/examples.mjs"
import { checkImports } from "./pack-check/imports.mjs"
import { packedConsumer, temporaryFolder } from "./pack-check/packedConsumer.mjs"
import { mustHold, systemNode, writePrograms } from "./pack-check/programs.mjs"
import { quickStart } from "./pack-check/quickStart.mjs"
import { runReadme } from "./pack-check/readme.mjs"
import { runRecipes } from "./pack-check/recipes.mjs"
import { withRedis } from "./pack-check/redisServer.mjs"
import { allWell, step } from "./pack-check/report.mjs"
import { installRuntimes } from "./pack-check/runtimes.mjs"
import { reportTable, runtimeRows } from "./pack-check/runtimeTable.mjs"
import { simulate } from "./pack-check/simulations.mjs"
import { lint } from "./pack-check/tarballs.mjs"
import { runTests, writeTests } from "./pack-check/tests.mjs"
import { checkTypeCounts, checkTypes, checkWrongOptions } from "./pack-check/types.mjs"

const { values } = commandLine({
  options: { long: { type: "boolean", default: false }, write: { type: "boolean", default: false } }
})
const { long } = values
const temporary = temporaryFolder()
const { consumer, packed } = await packedConsumer(temporary, long ? { "typescript-5": "npm:typescript@5.9" } : {})

const usePackages = () =>
  Promise.all([
    step("tests in the documentation, and the store contracts", async () => {
      const documented = writeTests(consumer)
      const result = await withRedis((redisUrl) => runTests(consumer, redisUrl))
      return `${result}, in ${documented} examples and the contracts`
    }),
    (async () => {
      await step("types", () => checkTypes(consumer, packed, long ? ["typescript", "typescript-5"] : ["typescript"]))
      await step("wrong options", () => checkWrongOptions(consumer))
      await step("what locks add to a type check", () => checkTypeCounts(consumer))
      await step("bundles", () => checkBundles(consumer))
      await step("imports on the system's Node", () => checkImports(consumer, packed))
      await step("the README's programs", () => {
        const env = { ...process.env, NODE_OPTIONS: "" }
        return withRedis((redisUrl) =>
          runReadme({
            canStrip: true,
            env,
            folder: join(consumer, "readme"),
            installed: consumer,
            node: process.execPath,
            redisUrl
          })
        )
      })
      await step("programs on the system's Node", async () => {
        writePrograms(consumer)
        const programs = [
          "out/program.js",
          "runtime/memory.mjs",
          "runtime/fake.mjs",
          "runtime/plain.mjs",
          "runtime/ioredis.mjs"
        ]
        // These programs have their own server because they break all connections
        await withRedis((redisUrl) => mustHold(systemNode, consumer, programs, redisUrl))
        await withRedis((redisUrl) => mustHold(systemNode, consumer, ["runtime/commandLine.mjs"], redisUrl))
      })
      await step("npx, as the guides print it", () =>
        withRedis((redisUrl) => runCommandLines(packed, temporary, redisUrl)))
    })(),
    (async () => {
      await step("simulations", () =>
        simulate(consumer, long ? 100 : 5))
      await step("publint, and are the types wrong?", async () => {
        for (const one of packed) await lint(one)
      })
    })()
  ])

const useRuntimes = async (redisUrl) => {
  let runtimes = []
  await step("install the runtimes", async () => {
    runtimes = await installRuntimes()
  })
  await step(
    "runtimes",
    async () => reportTable(await runtimeRows(runtimes, consumer, redisUrl), values.write)
  )
  await step("the in-memory Redis recipes", () => runRecipes(packed, runtimes, temporary))
  let examples
  await step("install what the examples import", async () => {
    examples = await installExamples(packed, temporary)
  })
  await step("the examples, each with its one command", () => runTests(examples, redisUrl))
  for (const runtime of runtimes.filter(({ name }) => name !== "Node")) {
    await step(`own-client.ts on ${runtime.name} ${runtime.version}`, () => runOn(runtime, examples, redisUrl))
  }
  for (const runtime of runtimes.filter(({ name }) => name === "Node")) {
    await step(
      `what the README and the testing guide say, on Node ${runtime.version}`,
      () => quickStart(runtime, packed, temporary, redisUrl)
    )
  }
}

if (allWell()) await usePackages()
if (allWell() && long) await withRedis(useRuntimes)
