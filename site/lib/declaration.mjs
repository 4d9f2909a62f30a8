// Renders a declaration for the API reference: its source without function bodies.
import ts from "typescript"

/** Returns the text of a doc comment without the comment markers. */
export const withoutMargin = (comment) => comment.replace(/^\/\*\*[ \n]?|\s*\*\/$/g, "").replace(/^ *\* ?/gm, "").trim()

const textOf = (node, source) => node.getText(source)

/** Returns the signature of a function, or undefined if the source does not state the result type. */
const typeOfFunction = (node, source) => {
  const generics = node.typeParameters === undefined
    ? ""
    : `<${node.typeParameters.map((parameter) => textOf(parameter, source)).join(", ")}>`
  const inline = node.parameters.map((parameter) => textOf(parameter, source))
  const returned = node.type !== undefined
    ? textOf(node.type, source)
    : ts.isArrowFunction(node) && ts.isArrowFunction(node.body)
    ? typeOfFunction(node.body, source)
    : undefined
  if (returned === undefined) return undefined
  const line = `${generics}(${inline.join(", ")}) => ${returned}`
  if (inline.length === 0 || (line.length < 80 && !line.includes("\n"))) return line
  return `${generics}(\n  ${inline.join(",\n  ")}\n) => ${returned}`
}

const isFunction = (node) => node !== undefined && (ts.isArrowFunction(node) || ts.isFunctionExpression(node))

/** Returns the source text of a node without function bodies. */
const withoutBodies = (node, source) => {
  const bodies = []
  const visit = (child) => {
    if (child.body !== undefined && ts.isBlock(child.body)) bodies.push(child.body)
    else ts.forEachChild(child, visit)
  }
  visit(node)
  const start = node.getStart(source)
  return bodies.reverse().reduce(
    (text, { end, pos }) => text.slice(0, pos - start) + text.slice(end - start),
    textOf(node, source)
  )
}

const variable = (declaration, source) => {
  const { initializer, name, type } = declaration
  if (type !== undefined) return `const ${name.text}: ${textOf(type, source)}`
  const signature = isFunction(initializer) ? typeOfFunction(initializer, source) : undefined
  if (signature !== undefined) return `const ${name.text}: ${signature}`
  return `const ${name.text} = ${withoutBodies(initializer, source)}`
}

/** Returns the declaration of an exported statement, without `export` and function bodies. */
export const declarationOf = (node, source) => {
  if (ts.isVariableStatement(node)) {
    return node.declarationList.declarations.map((declaration) => variable(declaration, source)).join("\n")
  }
  return withoutBodies(node, source).replace(/^(export |declare )+/, "").replace(/ *\{\s*\}$/, "")
}
