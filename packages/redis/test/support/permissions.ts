/** Reads the ACL rules from docs/operations.md, so that tests run with precisely the documented permissions. */
import { readFileSync } from "node:fs"

const page = readFileSync(new URL("../../../../docs/operations.md", import.meta.url), "utf8")

/** Returns the rules below the nth permissions heading. 1: mutexes. 2: what data streams need in addition. */
export const rulesOf = (nth: number): ReadonlyArray<string> => {
  const block = page.split(/^#+ Permissions(?: for data streams)?$/m)[nth]!.split("```text\n")[1]!.split("```")[0]!
  return block.replace("ACL SETUSER locks", "").split(/\s+/).filter((rule) => rule !== "")
}
