import { defineConfig } from "vitest/config"

/** The tests that start Redis servers. They wait most of the time, so that many fit beside each other. */
const server = ["packages/redis/test/server/**/*.test.ts", "packages/testkit/test/differential/*.test.ts"]

export default defineConfig({
  test: {
    pool: "forks",
    isolate: false,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "memory",
          include: ["packages/*/test/**/*.test.ts", "examples/test/*.test.ts"],
          exclude: server,
          maxWorkers: 2
        }
      },
      {
        extends: true,
        test: { name: "server", include: server, maxWorkers: 6, sequence: { groupOrder: 1 } }
      }
    ]
  }
})
