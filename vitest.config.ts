import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    projects: ["packages/*", "examples"],
    passWithNoTests: true,
    pool: "forks",
    maxWorkers: 2
  }
})
