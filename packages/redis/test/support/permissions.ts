/** The permissions of a Redis user, as the documentation lists them. */
import { readFileSync } from "node:fs"

const page = readFileSync(new URL("../../../../docs/operations.md", import.meta.url), "utf8")

/**
 * The rules in the block of text below the nth heading about permissions: 1 for mutexes, 2 for the additional ones of
 * data streams.
 */
export const rulesOf = (nth: number): ReadonlyArray<string> => {
  const block = page.split(/^#+ Permissions(?: for data streams)?$/m)[nth]!.split("```text\n")[1]!.split("```")[0]!
  return block.replace("ACL SETUSER locks", "").split(/\s+/).filter((rule) => rule !== "")
}
