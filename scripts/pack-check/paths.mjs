// The paths of the repository's files that the check uses, in one place.

/** The command that runs seeds of a plan, and the plans that are run. */
export const simulator = "packages/redis/test/simulate/main.ts"
export const plans = ["mutex", "mixed-fleet", "streams"]

/**
 * What the plans import from sources, to read keys and calls. Everything else that they import is in their folder, or
 * packed.
 */
const inRedis = (...files) => files.map((file) => `packages/redis/src/${file}.ts`)
export const simulatorHelpers = inRedis(
  ...["codecs", "commandSink", "decode", "driverError", "effectRedis", "errors", "log", "malformedInput", "script"]
    .map((file) => `internal/client/${file}`),
  ...["keys", "lockModel", "ownership", "replies", "scriptCalls", "scripts.generated"]
    .map((file) => `internal/mutex/${file}`),
  "streams/internal/keys"
)

/** The page with the table of runtimes. */
export const requirementsPage = "docs/requirements.md"

/** The page that says how to test, with an install line of its own. */
export const testingPage = "docs/testing.md"
