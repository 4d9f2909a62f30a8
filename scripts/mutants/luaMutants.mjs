// Generates mutants of the Lua scripts. A mutant is one change in one file, and applies to every script that includes
// the file.
import { parse } from "luaparse"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { basename } from "node:path"
import { assemble, includesOf, scriptsOf, split, strip } from "../lib/lua.mjs"
import { shown } from "../lib/workspace.mjs"

const operators = {
  "==": ["~="],
  "~=": ["=="],
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "%": ["*"],
  and: ["or"],
  or: ["and"]
}

/** Calls `see` with each node below a node and the statement that contains it. */
const visit = (node, statement, see) => {
  if (Array.isArray(node)) return node.forEach((item) => visit(item, statement, see))
  if (node === null || typeof node !== "object") return
  if (typeof node.type === "string") {
    if (node.type.endsWith("Statement") || node.type === "FunctionDeclaration" && node.identifier) statement = node
    see(node, statement)
  }
  for (const [key, value] of Object.entries(node)) if (key !== "range" && key !== "loc") visit(value, statement, see)
}

const edits = (body) => {
  const statements = []
  const found = []
  const tree = parse(body, { luaVersion: "5.1", ranges: true })
  visit(tree, undefined, (node, statement) => {
    if (statement === node) statements.push(node)
    const add = ([from, to], text) => found.push({ from, to, text, statement })
    switch (node.type) {
      case "BinaryExpression":
      case "LogicalExpression": {
        const from = body.indexOf(node.operator, node.left.range[1])
        for (const text of operators[node.operator] ?? []) add([from, from + node.operator.length], text)
        break
      }
      case "UnaryExpression":
        if (node.operator === "not") add([node.range[0], node.argument.range[0]], "")
        break
      case "IfClause":
      case "ElseifClause":
        add(node.condition.range, "true")
        add(node.condition.range, "false")
        break
      case "WhileStatement":
        add(node.condition.range, "false")
        break
      case "NumericLiteral":
        add(node.range, String(node.value + 1))
        if (node.value > 1) add(node.range, String(node.value - 1))
        break
      case "CallStatement":
      case "AssignmentStatement":
        add(node.range, "do end")
    }
  })
  return { statements, found }
}

const replaced = (text, { from, text: by, to }) => text.slice(0, from) + by + text.slice(to)

export const lineAt = (text, at) =>
  text.slice(text.lastIndexOf("\n", at - 1) + 1, (text + "\n").indexOf("\n", at)).trim()

export const hash = (text) => createHash("sha256").update(text).digest("base64url").slice(0, 16)

/**
 * `programs` has the text of each production script, with and without statement coverage. A mutant has the texts of the
 * scripts that it changes. It is identified by its file and the line before and after the change.
 */
export const luaMutants = (folder, area) => {
  const scripts = scriptsOf(folder).map((path) => ({ path, text: strip(assemble(path)) }))
  const bodies = new Map()
  const covered = {}
  const mutants = []
  const names = new Map()
  for (const path of [...scriptsOf(folder), ...includesOf(folder)]) {
    const file = shown(path)
    const name = basename(path, ".lua")
    const { body } = split(readFileSync(path, "utf8"))
    const { found, statements } = edits(body)
    bodies.set(name, file)
    covered[name] = [...statements].sort((a, b) => b.range[0] - a.range[0]).reduce(
      (text, { range: [from] }) => replaced(text, { from, to: from, text: `redis.call('@cov','${file}:${from}'); ` }),
      body
    )
    for (const edit of found) {
      const changed = replaced(body, edit)
      const [before, after] = [lineAt(body, edit.from), lineAt(changed, edit.from)]
      const plain = `${before} -> ${after}`
      const count = (names.get(`${file} ${plain}`) ?? 0) + 1
      names.set(`${file} ${plain}`, count)
      const programs = scripts.flatMap(({ path, text }, index) => {
        let mutated
        try {
          mutated = strip(assemble(path, { [name]: changed }))
        } catch {
          return []
        }
        return mutated === text ? [] : [[index, mutated]]
      })
      if (programs.length === 0) continue
      mutants.push({
        area,
        file,
        what: count === 1 ? plain : `${plain} #${count}`,
        line: body.slice(0, edit.from).split("\n").length,
        hash: hash(JSON.stringify(programs)),
        place: `${file}:${edit.statement.range[0]}`,
        programs
      })
    }
  }
  const programs = scripts.map(({ path, text }) => ({ text, covered: strip(assemble(path, covered)) }))
  return { mutants, programs }
}
