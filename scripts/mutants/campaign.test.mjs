// Sorted behind all other test files: the runner starts the mutants here, once all tests are loaded.
import { it } from "vitest"

it("mutants", () => {})
