// Sorted behind all others: the runner starts the mutants here, when all tests are loaded.
import { it } from "vitest"

it("mutants", () => {})
