import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Starts the files that take minutes first. Otherwise one of them would run alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const isLong = ({ moduleId }: TestSpecification) => /[eE]xploration\.test\.ts$/.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

/** The tests that start servers. They mostly wait, so many of them can run concurrently. */
const server = [
  "packages/core/test/server/*.test.ts",
  "examples/test/programs.test.ts",
  "packages/redis/test/server/**/*.test.ts",
  "packages/cli/test/server/*.test.ts",
  "packages/fake-redis/test/{differential,foreign}/*.test.ts"
]

/** Known problems (docs/known-problems.md) by where they were found, then the safety and liveness properties. */
const numbered = { S: 25, B: 60, G: 32, H: 7, L: 6 }
const tags = Object.entries(numbered).flatMap(([letter, count]) =>
  Array.from({ length: count }, (_, index) => ({ name: `${letter}${index + 1}` }))
)

export default defineConfig({
  test: {
    tags: [...tags, {
      name: "long",
      description: "Needs much CPU time: `npm test` runs it, `pnpm test` does not.",
      timeout: 600_000
    }],
    pool: "forks",
    sequence: { sequencer: LongestFirst },
    isolate: false,
    // Some mistakes only make a test hang. It then fails after this time
    testTimeout: 180_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "memory",
          include: ["packages/*/test/**/*.test.ts", "examples/test/*.test.ts", "playground/test/*.test.ts"],
          exclude: server,
          maxWorkers: 2
        }
      },
      {
        extends: true,
        test: { name: "server", include: server, maxWorkers: 4, sequence: { groupOrder: 1 } }
      }
    ]
  }
})
