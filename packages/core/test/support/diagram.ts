/** Reads the documented state diagrams. */
import { readFileSync } from "node:fs"

/** The sorted arrows of the diagram in docs/protocol.md that starts with this state. */
export const diagramOf = (first: string): ReadonlyArray<string> => {
  const page = readFileSync(new URL("../../../../docs/protocol.md", import.meta.url), "utf8")
  const [, diagram = ""] = new RegExp(`stateDiagram-v2\\n(\\s*\\[\\*\\] --> ${first}\\n[^\`]*)\`\`\``).exec(page) ?? []
  return diagram.trim().split("\n").map((line) => line.trim()).sort()
}
