// Paths of the repository's files that the pack check uses.

/** The program that runs seeds of a plan, and the plans that the check runs. */
export const simulator = "packages/redis/test/simulate/main.ts"
export const plans = ["mutex", "mixed-fleet", "streams"]

/**
 * Source files that the plans import, in order to read keys and calls. All their other imports are in their own folder
 * or come from the packed packages.
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

/** The testing guide, which has its own install line. */
export const testingPage = "docs/testing.md"
