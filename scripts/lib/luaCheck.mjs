// What is wrong with a Lua file, and with the descriptor of a script.
//
// - It parses, and uses no name but its own, those of Redis, and in an include those after `Needs` and `Sets`.
// - Its header says what it does, and what it takes: `KEYS[1] name`. `KEYS[4n+1] name` comes again for each item;
//   `ARGV[5..] name` is all the rest.
// - Each numbered slot is named once, by a local of that name. A slot that comes again is named somewhere.
// - The descriptor takes slots of the same names in the same order.
import { parse } from "luaparse"
import { readFileSync } from "node:fs"
import { basename } from "node:path"
import { parseAst } from "rolldown/parseAst"
import { assemble, split } from "./lua.mjs"

const provided = new Set(
  "KEYS ARGV cjson redis string math table error ipairs pairs pcall tonumber tostring type unpack".split(" ")
)

const slotLine = /^(KEYS|ARGV)\[(?:(\d+)|(\d*)n([+-]\d+)?|(\d+)\.\.)\] (\w+)(?: +\S.*)?$/

/** The slots of a header: numbered ones, those that come again, and the rest. */
const slotsOf = (header, problem) => {
  const slots = { KEYS: { fixed: [], each: [], rest: [] }, ARGV: { fixed: [], each: [], rest: [] } }
  for (const line of header) {
    if (!/^(?:KEYS|ARGV)\b/.test(line)) continue
    const match = slotLine.exec(line)
    if (match === null) {
      problem(`cannot read "${line}"`)
      continue
    }
    const [, table, number, period, offset, from, name] = match
    const { each, fixed, rest } = slots[table]
    const expect = (found, wanted) =>
      found === wanted || problem(`${table}[${found}] where ${wanted} comes next: ${line}`)
    if (number !== undefined) {
      expect(Number(number), fixed.length + 1)
      fixed.push(name)
    } else if (from !== undefined) {
      expect(Number(from), fixed.length + 1)
      rest.push(name)
    } else {
      each.push({ name, period: Number(period || 1), first: Number(period || 1) + Number(offset ?? 0) })
      expect(each.at(-1).first, fixed.length + each.length)
    }
  }
  for (const [table, { each }] of Object.entries(slots)) {
    for (const { name, period } of each) {
      if (period !== each.length) problem(`${table} of ${name} come again after ${each.length}, not ${period}`)
    }
  }
  return slots
}

const named = ({ each, fixed, rest }) =>
  [
    ...fixed,
    each.length > 0 && `each (${each.map(({ name }) => name).join(", ")})`,
    ...rest.map((name) => `...${name}`)
  ]
    .filter(Boolean).join(", ")

const visit = (node, see, parents = []) => {
  if (Array.isArray(node)) { for (const item of node) visit(item, see, parents) }
  else if (typeof node?.type === "string") {
    see(node, parents)
    for (const value of Object.values(node)) visit(value, see, [...parents, node])
  }
}

const isTable = (node, table) => node?.type === "Identifier" && node.name === table

/** The local that an expression makes, or a part of one. */
const localOf = (node, parents) => {
  const statement = parents.findLast(({ type }) => type === "LocalStatement")
  const at = statement?.init.findIndex((init) => init === node || parents.includes(init))
  return at === undefined ? undefined : statement.variables[at]?.name
}

const checkUse = (tree, slots, problem) => {
  const locals = new Set()
  visit(tree.body, (node) => {
    if (node.type === "Identifier" && node.isLocal) locals.add(node.name)
  })
  for (const [table, { each, fixed, rest }] of Object.entries(slots)) {
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
      if (local !== fixed[at - 1]) {
        problem(`${table}[${at}] is ${fixed[at - 1]} in the header, not ${local ?? "nameless"}`)
      }
    })
    uses.forEach((count, at) => {
      if (count !== 1) problem(`${table}[${at + 1}] ${fixed[at]} is read ${count} times: read it once, into a local`)
    })
    for (const { name } of each) {
      if (!locals.has(name)) problem(`${table} ${name} comes again, and no local has its name`)
    }
    if (others > 0 && each.length + rest.length === 0) problem(`${table} is used without a number`)
    if (others === 0 && each.length + rest.length > 0) {
      problem(`${table} ${named({ fixed: [], each, rest })} is not used`)
    }
  }
}

const lint = (tree, problem) =>
  visit(tree.body, (node) => {
    const callee = node.type === "CallExpression" && node.base.type === "MemberExpression" && node.base
    if (!callee) return
    const name = `${callee.base.name}.${callee.identifier.name}`
    if (name === "string.format" && /%[-+ #0]*\d*d/.test(node.arguments[0].raw)) {
      problem("no %d in string.format: it cuts off at 32 bits on some builds; use %.0f")
    }
    if (name === "math.random") problem("no math.random: a script must give the same result when it is run again")
  })

const freeNames = (tree) => new Set(tree.globals.map(({ name }) => name).filter((name) => !provided.has(name)))

/** Whether the text parses; its tree. */
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
  if (!/^[A-Z].*\.$/.test(header[0] ?? "")) problem("opens with no sentence that says what it does")
  const tree = parsed(assemble(path), problem)
  if (tree === undefined) return
  lint(tree, problem)
  const needs = header.flatMap((line) => /^(?:Needs|Sets) (.*)\.$/.exec(line)?.[1].split(", ") ?? [])
  const free = freeNames(tree)
  for (const name of free) if (!needs.includes(name)) problem(`${name} comes from nowhere`)
  for (const name of needs) if (!free.has(name)) problem(`it does not need ${name}`)
  if (!isScript) return
  if (!header.some((line) => line.startsWith("Reply: "))) problem("the header says no reply")
  const slots = slotsOf(header, problem)
  checkUse(tree, slots, problem)
  return slots
}

export const checkInclude = (path, problem) => void checkFile(path, problem, false)

/** The slots that a tuple type names, in the form of those of a header. */
const tupleSlots = (type, aliases) => {
  const slots = { fixed: [], each: [], rest: [] }
  const tuple = type.type === "TSTypeOperator" ? type.typeAnnotation : type
  if (tuple.type === "TSTypeReference") return tupleSlots(aliases.get(tuple.typeName.name), aliases)
  for (const element of tuple.elementTypes) {
    if (element.type === "TSNamedTupleMember") slots.fixed.push(element.label.name)
    else {
      const { elementType, label, ...spread } = element.typeAnnotation
      if (label === undefined) slots.fixed.push(...tupleSlots(spread, aliases).fixed)
      else if (label.name === "each") {
        const { fixed } = tupleSlots(elementType.typeArguments.params[0], aliases)
        slots.each.push(...fixed.map((name) => ({ name })))
      } else slots.rest.push(label.name)
    }
  }
  return slots
}

/** The descriptors of a module by the name of their text: `script<Keys, Args, Reply>(lua.name)`. */
const descriptorsOf = (path) => {
  const { body } = parseAst(readFileSync(path, "utf8"), { lang: "ts" }, path)
  const aliases = new Map(
    body.map((statement) => statement.declaration ?? statement)
      .filter(({ type }) => type === "TSTypeAliasDeclaration")
      .map(({ id, typeAnnotation }) => [id.name, typeAnnotation])
  )
  const found = new Map()
  for (const { declaration } of body) {
    const { id, init } = declaration?.declarations?.[0] ?? {}
    if (init?.callee?.name !== "script") continue
    const [keys, args] = init.typeArguments.params
    found.set(init.arguments[0].property.name, {
      name: id.name,
      KEYS: tupleSlots(keys, aliases),
      ARGV: tupleSlots(args, aliases)
    })
  }
  return found
}

/** Checks the scripts of one folder, and their descriptors in `module`. */
export const checkScripts = (paths, module, report) => {
  const descriptors = descriptorsOf(module)
  for (const path of paths) {
    const problem = (text) => report(path, text)
    const slots = checkFile(path, problem, true)
    const name = basename(path, ".lua")
    const descriptor = descriptors.get(name)
    if (descriptor?.name !== name) problem(`${basename(module)} has no descriptor of this name`)
    else if (slots !== undefined) {
      for (const table of ["KEYS", "ARGV"]) {
        const [wanted, given] = [named(slots[table]), named(descriptor[table])]
        if (wanted !== given) problem(`the descriptor takes ${table} ${given}; the header says ${wanted}`)
      }
    }
  }
}
