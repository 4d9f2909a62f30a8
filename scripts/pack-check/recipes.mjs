// Runs the recipes from the in-memory Redis README, each in its test runner.
//
//   node scripts/pack-check/recipes.mjs    packs only that package; run `node scripts/bundle.mjs` first
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { join } from "node:path"
import { fencedBlocks } from "../lib/doc-blocks.mjs"
import { root } from "../lib/workspace.mjs"
import { binOf, fromTarballs, install, pinned, system } from "./consumer.mjs"
import { temporaryFolder } from "./packedConsumer.mjs"
import { run } from "./processes.mjs"
import { problem, step } from "./report.mjs"
import { installRuntimes } from "./runtimes.mjs"
import { pack } from "./tarballs.mjs"

const jest = "30.2.0"

/** The recipe with hooks, and the one without. */
const recipes = () => {
  const blocks = fencedBlocks(readFileSync(join(root, "packages/fake-redis/README.md"), "utf8"))
  const importing = (runner) => blocks.find(({ code }) => code.includes(`from "${runner}"`))?.code ?? ""
  return { hooks: importing("vitest"), plain: importing("node:test") }
}

const files = ({ hooks, plain }) => ({
  "vitest/counts.test.ts": hooks,
  "jest/counts.test.js": stripTypeScriptTypes(hooks).replace("\"vitest\"", "\"@jest/globals\""),
  "bun/counts.test.ts": hooks.replace("\"vitest\"", "\"bun:test\""),
  "node/counts.test.mts": plain,
  "deno/counts.test.ts": plain
})

/** The command of each runner, and the output that shows that one test passed. */
const commands = (folder, { bun, deno, node }) => [
  ["Vitest", "vitest", process.execPath, [binOf(folder, "vitest"), "run"], /1 passed/],
  ["Jest", "jest", process.execPath, ["--experimental-vm-modules", binOf(folder, "jest")], /1 passed/],
  ["Bun", "bun", bun, ["test"], /1 pass\b/],
  ["node:test", "node", node, ["--test", "counts.test.mts"], /pass 1\b/],
  ["Deno", "deno", deno, ["test", "--allow-all", "--no-check", "counts.test.ts"], /1 passed/]
]

export const runRecipes = async (packed, runtimes, temporary) => {
  const folder = join(temporary, "recipes")
  const own = packed.filter(({ name }) => name === "@effect-simba/fake-redis")
  await install(folder, { ...fromTarballs(own), ioredis: pinned.ioredis, jest, vitest: pinned.vitest })
  for (const [file, code] of Object.entries(files(recipes()))) {
    mkdirSync(join(folder, file, ".."), { recursive: true })
    // Make runners search for their configuration here, not in a parent folder
    writeFileSync(join(folder, file, "..", "package.json"), JSON.stringify({ private: true, type: "module" }))
    writeFileSync(join(folder, file), code)
  }
  const newest = (name) => runtimes.filter((runtime) => runtime.name === name).at(-1).command
  const places = { bun: newest("Bun"), deno: newest("Deno"), node: process.execPath }
  for (const [runner, place, command, args, passed] of commands(folder, places)) {
    const { failed, text } = await run(command, args, { cwd: join(folder, place), env: { ...system, NO_COLOR: "1" } })
    if (failed || !passed.test(text)) problem(`the recipe for ${runner}:\n${text}`)
  }
  return "Vitest, Jest, Bun, node:test, Deno"
}

if (import.meta.main) {
  const temporary = temporaryFolder()
  await step("recipes", async () => {
    const packed = [await pack(join(root, "packages/fake-redis"), temporary)]
    return runRecipes(packed, await installRuntimes(), temporary)
  })
}
