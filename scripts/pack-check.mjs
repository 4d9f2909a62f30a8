// Packs the packages as they would be published and uses them as a stranger would: in an empty folder elsewhere, where
// they were installed with npm. Needs a finished `pnpm build` and a redis-server on the PATH.
//
//   node scripts/pack-check.mjs
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { packageFolders } from "./lib/workspace.mjs"
import { fromTarballs, install, pinned } from "./pack-check/consumer.mjs"
import { checkImports } from "./pack-check/imports.mjs"
import { runPrograms } from "./pack-check/programs.mjs"
import { withRedis } from "./pack-check/redisServer.mjs"
import { problems, step } from "./pack-check/report.mjs"
import { simulate } from "./pack-check/simulations.mjs"
import { inspect, lint, pack } from "./pack-check/tarballs.mjs"
import { runTests, writeTests } from "./pack-check/tests.mjs"
import { checkTypes } from "./pack-check/types.mjs"

const temporary = mkdtempSync(join(tmpdir(), "effect-simba-pack-"))
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }))

const packed = []
await step("tarballs", async () => {
  for (const folder of packageFolders) packed.push(await pack(folder, temporary))
  if (problems.length === 0) await Promise.all(packed.map(inspect))
  return packed.map(({ tarball }) => basename(tarball)).join(", ")
})

const consumer = join(temporary, "consumer")
const needed = ["effect", "ioredis", "@effect/vitest", "vitest", "@types/node", "typescript"]
if (problems.length === 0) {
  await step("npm install in an empty folder", () =>
    install(consumer, {
      ...fromTarballs(packed),
      ...Object.fromEntries(needed.map((name) => [name, pinned[name]]))
    }))
}

if (problems.length === 0) {
  await Promise.all([
    step("publint, and are the types wrong?", async () => {
      for (const one of packed) await lint(one)
    }),
    step("imports on the system's Node", () => checkImports(consumer, packed)),
    (async () => {
      await step("types", () => checkTypes(consumer, packed, ["typescript"]))
      await step("programs on the system's Node", () => runPrograms(consumer))
      await step("simulations", () => simulate(consumer, 5))
    })(),
    step("tests of the documentation, and the contracts of the stores", async () => {
      const documented = writeTests(consumer)
      const result = await withRedis((url) => runTests(consumer, url))
      return `${result}, in ${documented} examples and the contracts`
    })
  ])
}

if (problems.length > 0) {
  console.error(`\n${problems.join("\n\n")}`)
  process.exitCode = 1
}
