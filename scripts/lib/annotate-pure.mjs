// A Rolldown plugin that annotates calls as pure if they only compute a constant or the parent of a class, so that
// bundlers can drop them if unused. The package's `sideEffects` does not suffice once a file contains several modules.

const mark = "/* @__PURE__ */ "

/** The positions of calls that run when the module is loaded. */
const callsIn = (node, found) => {
  if (Array.isArray(node)) { for (const item of node) callsIn(item, found) }
  else if (typeof node?.type === "string") {
    if (/Function/.test(node.type) || (node.type === "PropertyDefinition" && !node.static)) return
    if (node.type === "CallExpression" || node.type === "NewExpression") found.add(node.start)
    for (const value of Object.values(node)) callsIn(value, found)
  }
}

export const annotatePure = {
  name: "annotate-pure",
  renderChunk(code, _chunk, _options, { magicString }) {
    const calls = new Set()
    for (const statement of this.parse(code).body) {
      if (/^(?:VariableDeclaration|ClassDeclaration)$/.test(statement.type)) callsIn(statement, calls)
    }
    for (const at of calls) if (!code.slice(0, at).endsWith(mark)) magicString.appendLeft(at, mark)
    return magicString
  }
}
