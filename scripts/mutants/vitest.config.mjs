// The Vitest configuration for a `pnpm mutants` worker: it mutates the modules and replaces the runner.
import { createRequire } from "node:module"
import { join } from "node:path"
import { defineConfig } from "vitest/config"
import { root } from "../lib/workspace.mjs"
import { work } from "./state.mjs"
import { isMutated, mutated } from "./typescriptMutants.mjs"

const here = (name) => join(import.meta.dirname, name)
const original = createRequire(join(root, "packages/redis/package.json")).resolve("@effect/vitest")
const campaign = here("campaign.test.mjs")

/** Runs the campaign's file last, because it needs all tests to be loaded. */
class InOrder {
  shard(files) {
    return files
  }
  sort(files) {
    return [...files].sort((a, b) => Number(a.moduleId === campaign) - Number(b.moduleId === campaign))
  }
}

export default defineConfig({
  root,
  plugins: [{
    name: "mutants",
    enforce: "pre",
    // Do not cache mutated modules: a cached one would lack the mutants of this run
    configureVitest: ({ defineCacheKeyGenerator }) =>
      defineCacheKeyGenerator(({ id }) => isMutated(work, root, id) ? false : undefined),
    transform: (code, id) => mutated(work, root, code, id)
  }],
  resolve: {
    alias: [
      { find: /^effect-vitest-original$/, replacement: original },
      { find: /^@effect\/vitest$/, replacement: here("effectVitest.mjs") },
      { find: "@effect-simba/fake-redis/Engine", replacement: join(root, "packages/fake-redis/src/Engine.ts") }
    ]
  },
  test: {
    include: [...work.tests, "scripts/mutants/campaign.test.mjs"],
    runner: here("runner.mjs"),
    setupFiles: [here("setup.mjs")],
    fsModuleCache: true,
    fsModuleCachePath: join(work.out, "../modules"),
    pool: "forks",
    isolate: false,
    maxWorkers: 1,
    testTimeout: 0,
    hookTimeout: 600_000,
    teardownTimeout: 1000,
    dangerouslyIgnoreUnhandledErrors: true,
    silent: true,
    sequence: { sequencer: InOrder, concurrent: false },
    strictTags: false
  }
})
