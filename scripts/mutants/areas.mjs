// The areas of code that are mutated, with the test files that may detect the mutants, fast ones first.
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { root } from "../lib/workspace.mjs"
import { luaMutants } from "./luaMutants.mjs"
import { typescriptMutants } from "./typescriptMutants.mjs"

const memory = "packages/redis/test/memory"

/**
 * Test files that run first because they test one script or module. Files in neither list run between `fast` and
 * `slow`.
 */
const fast = [
  "mutexScripts",
  "jobScripts",
  "mutexStore",
  "batchScript",
  "operationBatch",
  "renewals",
  "streamStore",
  "streamForeignWrites",
  "streamMessages"
]
const slow = [
  "acquireQueue",
  "contentionScript",
  "outages",
  "streamInterop",
  "mixedFleet",
  "streamSimulation",
  "simulation",
  "redisSimulation",
  "exploration",
  "streamExploration"
]

const rank = (name) => fast.includes(name) ? fast.indexOf(name) - fast.length : slow.indexOf(name) + 1

const testsOf = (folder, keep) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".test.ts") && keep(name))
    .map((name) => name.replace(".test.ts", ""))
    .sort((a, b) => rank(a) - rank(b))
    .map((name) => `${folder}/${name}.test.ts`)

const ofStreams = (name) => /^(stream|testStreams|blockingRead|entryStates|expiryNudge)/.test(name)

const lua = (name, folder, keep) => ({
  name,
  make: () => ({ ...luaMutants(join(root, folder), name), tests: testsOf(memory, keep) })
})

const core = (...folders) => folders.flatMap((folder) => testsOf(`packages/core/test/${folder}`, () => true))

const typescript = (name, folder, tests, keep) => ({
  name,
  make: () => ({
    ...typescriptMutants(join(root, folder), name, keep),
    tests: tests()
  })
})

/** The store contract suite, run on the in-memory store. */
const contract = "packages/testkit/test/mutex/memoryStore.test.ts"

const ofMutex = () => testsOf(memory, (name) => !ofStreams(name))
const ofStores = () => testsOf(memory, ofStreams)

export const areas = [
  lua("lua-mutex", "packages/redis/src/internal/mutex", (name) => !ofStreams(name)),
  lua("lua-streams", "packages/redis/src/streams/internal", ofStreams),
  typescript("core-lease", "packages/core/src/internal/lease", () => core("lease", "mutex", "streams")),
  typescript(
    "core-mutex",
    "packages/core/src/internal/mutex",
    () => [...core("mutex", "lease"), contract, ...ofMutex()]
  ),
  typescript(
    "core-leadership",
    "packages/core/src/internal/leadership",
    () => [...core("leadership"), contract, ...testsOf(memory, (name) => name.startsWith("job"))]
  ),
  typescript("core-streams", "packages/core/src/streams/internal", () => [...core("streams"), ...ofStores()]),
  typescript(
    "redis-client",
    "packages/redis/src/internal/client",
    () => testsOf(memory, () => true),
    (path) => !path.includes("ioredis")
  ),
  typescript("redis-mutex", "packages/redis/src/internal/mutex", ofMutex),
  typescript("redis-streams", "packages/redis/src/streams/internal", ofStores),
  typescript(
    "checkers",
    "packages/testkit/src",
    () => ["checkers", "streams", "simulation"].flatMap((name) => testsOf(`packages/testkit/test/${name}`, () => true)),
    (path) => path.includes("checkers") || path.endsWith("Checker.ts")
  )
]
