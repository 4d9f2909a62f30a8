// Checks a Lua file:
//
// - It parses, and uses only names from itself, its includes and Redis. Functions take what they need as parameters.
// - Its header says what it does and describes its KEYS, ARGV and reply (`luaHead.mjs`).
// - Each numbered key or argument is read once, into a local with its name. For each repeated one, some local has its
//   name. The arguments of `forEach` agree with the header.
import { parse } from "luaparse"
import { readFileSync } from "node:fs"
import { assemble, split } from "./lua.mjs"
import { headOf } from "./luaHead.mjs"

const provided = new Set(
  "KEYS ARGV cjson redis string math table error ipairs pairs pcall tonumber tostring type unpack".split(" ")
)

const visit = (node, see, parents = []) => {
  if (Array.isArray(node)) { for (const item of node) visit(item, see, parents) }
  else if (typeof node?.type === "string") {
    see(node, parents)
    for (const value of Object.values(node)) visit(value, see, [...parents, node])
  }
}

const isTable = (node, table) => node?.type === "Identifier" && node.name === table

/** The name of the local that an expression initializes, alone or as part of a larger expression. */
const localOf = (node, parents) => {
  const statement = parents.findLast(({ type }) => type === "LocalStatement")
  const at = statement?.init.findIndex((init) => init === node || parents.includes(init))
  return at === undefined ? undefined : statement.variables[at]?.name
}

const checkUse = (tree, { ARGV, KEYS }, problem) => {
  const locals = new Set()
  visit(tree.body, (node) => {
    if (node.type === "Identifier" && node.isLocal) locals.add(node.name)
  })
  for (const [table, { each, fixed, rest }] of Object.entries({ KEYS, ARGV })) {
    const uses = fixed.map(() => 0)
    let others = 0
    visit(tree.body, (node, parents) => {
      if (!isTable(node, table)) return
      const parent = parents.at(-1)
      const isSlot = parent.type === "IndexExpression" && parent.base === node && parent.index.type === "NumericLiteral"
      if (!isSlot) return void (others += 1)
      const at = parent.index.value
      if (fixed[at - 1] === undefined) return problem(`${table}[${at}] is not in the header`)
      uses[at - 1] += 1
      const local = localOf(parent, parents)
      if (local !== fixed[at - 1].name) {
        problem(`${table}[${at}] is ${fixed[at - 1].name} in the header, but is read into ${local ?? "no local"}`)
      }
    })
    uses.forEach((count, at) => {
      if (count !== 1) {
        problem(`${table}[${at + 1}] ${fixed[at].name} is read ${count} times: read it once, into a local`)
      }
    })
    for (const { name } of each) {
      if (!locals.has(name)) problem(`${table} ${name} is repeated in the header, but no local has its name`)
    }
    if (others > 0 && each.length + rest.length === 0) {
      problem(`${table} is used without a literal index, but the header has no repeated or remaining ones`)
    }
    if (others === 0 && each.length + rest.length > 0) {
      problem(`${table} ${[...each, ...rest].map(({ name }) => name).join(", ")} is not used`)
    }
  }
}

const checkForEach = (tree, { ARGV, KEYS }, problem) => {
  const functions = new Map()
  visit(tree.body, (node) => {
    if (node.type === "FunctionDeclaration" && node.identifier) functions.set(node.identifier.name, node)
  })
  const wanted = [...KEYS.each, ...ARGV.each].map(({ name }) => name)
  const counts = [KEYS.fixed.length, KEYS.each.length, ARGV.fixed.length].join(", ")
  visit(tree.body, (node) => {
    if (node.type !== "CallExpression" || node.base.name !== "forEach") return
    const [act, ...numbers] = [...node.arguments].reverse()
    const found = numbers.reverse().map(({ value }) => value).join(", ")
    if (found !== counts) problem(`forEach is called with ${found}, but the header requires ${counts}`)
    const { parameters } = functions.get(act.name) ?? act
    const isOpen = parameters.at(-1)?.type === "VarargLiteral"
    const names = parameters.filter(({ type }) => type === "Identifier").map(({ name }) => name)
    const expected = isOpen ? wanted.slice(0, names.length) : wanted
    if (names.join() !== expected.join()) {
      problem(`forEach passes ${expected.join(", ")}; its function takes ${names.join(", ")}`)
    }
  })
}

const lint = (tree, problem) =>
  visit(tree.body, (node) => {
    const callee = node.type === "CallExpression" && node.base.type === "MemberExpression" && node.base
    if (!callee) return
    const name = `${callee.base.name}.${callee.identifier.name}`
    if (name === "string.format" && /%[-+ #0]*\d*d/.test(node.arguments[0].raw)) {
      problem("no %d in string.format: it cuts off at 32 bits on some builds; use %.0f")
    }
    if (name === "math.random") problem("no math.random: a script must return the same result when it is run again")
  })

const freeNames = (tree) => new Set(tree.globals.map(({ name }) => name).filter((name) => !provided.has(name)))

/** Parses the text. Returns its tree, or reports a problem and returns undefined. */
const parsed = (text, problem) => {
  try {
    return parse(text, { luaVersion: "5.1", scope: true })
  } catch (error) {
    problem(error.message)
  }
}

const checkFile = (path, problem, isScript) => {
  const text = readFileSync(path, "utf8")
  if (text.split("\n").some((line) => line.length > 120)) problem("a line is longer than 120 characters")
  const { header } = split(text)
  if (!/^[A-Z].*\.$/.test(header[0] ?? "")) {
    problem("the header must begin with a sentence that says what the file does")
  }
  const tree = parsed(assemble(path), problem)
  if (tree === undefined) return
  lint(tree, problem)
  for (const name of freeNames(tree)) problem(`${name} is not defined`)
  if (!isScript) return
  const head = headOf(header, problem)
  if (head === undefined) return
  checkUse(tree, head, problem)
  checkForEach(tree, head, problem)
}

export const checkInclude = (path, problem) => void checkFile(path, problem, false)

export const checkScript = (path, problem) => void checkFile(path, problem, true)
