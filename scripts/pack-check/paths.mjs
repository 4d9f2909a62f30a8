// The files of the repository that the check names, in one place.

/** The command that runs seeds of a plan, and the plans that are run. */
export const simulator = "packages/redis/test/simulate/main.ts"
export const plans = ["mutex", "mixed-fleet", "streams"]

/** What the plans import from sources, to read keys and calls. All else that they import is in their folder, or packed. */
export const simulatorHelpers = [
  "packages/redis/src/internal/client/commandSink.ts",
  "packages/redis/src/internal/client/effectRedis.ts",
  "packages/redis/src/internal/mutex/keys.ts",
  "packages/redis/src/internal/mutex/lockModel.ts",
  "packages/redis/src/internal/mutex/scriptCalls.ts",
  "packages/redis/src/streams/internal/keys.ts"
]

/** The page with the table of runtimes. */
export const requirementsPage = "docs/requirements.md"

/** The page that says how to test, with an install line of its own. */
export const testingPage = "docs/testing.md"
