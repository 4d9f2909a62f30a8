// A placeholder that is sorted behind all other test files. When the runner gets here, all tests are loaded, and it
// starts the mutants.
import { it } from "vitest"

it("mutants", () => {})
