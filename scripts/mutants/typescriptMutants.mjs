// Generates mutants of TypeScript modules. One text contains all mutants of a module, each behind a switch, so that the
// active mutant can be chosen at run time.
import { readFileSync } from "node:fs"
import { relative, sep } from "node:path"
import { parseAst } from "rolldown/parseAst"
import { filesBelow, shown } from "../lib/workspace.mjs"
import { hash, lineAt } from "./luaMutants.mjs"

const operators = {
  "===": ["!=="],
  "!==": ["==="],
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "%": ["*"],
  "&&": ["||"],
  "||": ["&&"],
  "+=": ["-="],
  "-=": ["+="],
  "++": ["--"],
  "--": ["++"]
}

const isText = ({ left, right }) =>
  [left, right].some(({ type, value }) => type === "TemplateLiteral" || type === "Literal" && typeof value === "string")

/** Whether a property is the `discard` option, which only decides whether unused results are collected. */
const isDiscard = ({ key, type }) => type === "Property" && key.name === "discard"

const wrappers = new Set(["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"])

/** The mutations of a node, as replacement texts. */
const alternatives = (node, parent, key, code) => {
  const text = ({ end, start }) => code.slice(start, end)
  /** Replaces the operator. It follows the left operand and any closing parentheses. */
  const withOperator = (by) => {
    const at = code.indexOf(node.operator, node.left.end)
    return code.slice(node.start, at) + by + code.slice(at + node.operator.length, node.end)
  }
  const isCondition = key === "test" && (parent.type === "IfStatement" || parent.type === "ConditionalExpression")
  const found = isCondition ? ["true", "false"] : key === "test" && parent.type === "WhileStatement" ? ["false"] : []
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression":
      if (node.operator !== "+" || !isText(node)) {
        found.push(...(operators[node.operator] ?? []).map(withOperator))
      }
      break
    case "UnaryExpression":
      if (node.operator === "!") found.push(text(node.argument))
      break
    case "Literal":
      if (typeof node.value === "number") found.push(String(node.value + 1))
      if (typeof node.value === "boolean" && !isDiscard(parent)) found.push(String(!node.value))
      break
    case "AssignmentExpression":
      found.push(...(operators[node.operator] ?? []).map(withOperator))
      break
    case "UpdateExpression": {
      const [by] = operators[node.operator]
      found.push(node.prefix ? by + text(node.argument) : text(node.argument) + by)
    }
  }
  if (parent.type === "ExpressionStatement") found.push("undefined")
  return found
}

/** The module's text with a switch for each mutant. `see` returns the id of a mutant, or undefined to leave it out. */
const render = (code, see) => {
  const children = (node) =>
    Object.entries(node).flatMap(([key, value]) =>
      (Array.isArray(value) ? value : [value])
        .filter((item) => item !== null && typeof item === "object" && typeof item.type === "string")
        .map((child) => ({ key, child }))
    ).sort((a, b) => a.child.start - b.child.start)
  const isSkipped = (node, key, child) =>
    key === "key" && !node.computed || child.type.startsWith("TS") && !wrappers.has(child.type) ||
    child.type.startsWith("Import") || key === "typeAnnotation" || key === "label"
  const visit = (node, parent, key, inFunction) => {
    const inner = inFunction || /Function|PropertyDefinition/.test(node.type)
    let [text, at] = ["", node.start]
    for (const { child, key } of children(node)) {
      if (isSkipped(node, key, child) || child.start < at) continue
      text += code.slice(at, child.start) + visit(child, node, key, inner)
      at = child.end
    }
    text += code.slice(at, node.end)
    const ids = inFunction
      ? alternatives(node, parent, key, code).map((by, index) => [see(node, by, index), by])
        .filter(([id]) => id !== undefined)
      : []
    if (ids.length > 0) {
      const switches = ids.map(([id, by]) => `__mutant === ${id} ? (${by}) : `).join("")
      text = `(__mutant < 0 ? __reached(${ids[0][0]}) : __passed(), ${switches}(${text}))`
    }
    // Without semicolons, a line that begins with a parenthesis would continue the previous line
    return node.type === "ExpressionStatement" && text.startsWith("(") ? `void ${text}` : text
  }
  const program = parseAst(code, { lang: "ts" })
  return code.slice(0, program.start) + visit(program, {}, "", false) + code.slice(program.end)
}

export const typescriptMutants = (folder, area, keep = () => true) => {
  const mutants = []
  for (const path of filesBelow(folder, (name) => name.endsWith(".ts") && !name.endsWith(".generated.ts"))) {
    if (!keep(path)) continue
    const code = readFileSync(path, "utf8")
    const file = shown(path)
    const names = new Map()
    let ordinal = 0
    let place = 0
    render(code, ({ end, start }, by, index) => {
      if (index === 0) place = ordinal
      const changed = `${lineAt(code, start)} -> ${
        lineAt(code.slice(0, start) + by.replaceAll("\n", " ") + code.slice(end), start)
      }`
      const count = (names.get(changed) ?? 0) + 1
      names.set(changed, count)
      mutants.push({
        area,
        file,
        what: count === 1 ? changed : `${changed} #${count}`,
        line: code.slice(0, start).split("\n").length,
        hash: hash(code),
        place: `${file}#${place}`,
        ordinal: ordinal++
      })
      return undefined
    })
  }
  return { mutants, programs: [] }
}

const fileOf = (root, id) => relative(root, id.replace(/\?.*$/, "")).split(sep).join("/")

export const isMutated = (work, root, id) => {
  const file = fileOf(root, id)
  return work.mutants.some((mutant) => mutant.file === file)
}

/** The code that tests load instead of the module; undefined if the module has no mutants. */
export const mutated = (work, root, code, id) => {
  const file = fileOf(root, id)
  const ids = new Map(work.mutants.flatMap((mutant) => mutant.file === file ? [[mutant.ordinal, mutant.id]] : []))
  if (ids.size === 0 || !file.endsWith(".ts")) return undefined
  let ordinal = 0
  return { code: render(code, () => ids.get(ordinal++)), map: null }
}
