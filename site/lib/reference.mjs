// Generates the API reference for the public modules: each export with its declaration and doc comment.
import { existsSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import ts from "typescript"
import { packageFolders, publicModules, unstable } from "../../scripts/lib/workspace.mjs"
import { declarationOf, withoutMargin } from "./declaration.mjs"

/** Parses a doc comment into its text and its tags. */
const docOf = (comment = "") => {
  const text = withoutMargin(comment)
  const tags = [...text.matchAll(/^@(\w+) ?(.*)$/gm)].map(([, tag, value]) => ({ tag, value }))
  return {
    text: text.replace(/^@\w+.*$/gm, "").trim(),
    category: tags.find(({ tag }) => tag === "category")?.value,
    see: tags.filter(({ tag }) => tag === "see").map(({ value }) => /\{@link (\S+?)\}/.exec(value)?.[1])
  }
}

const commentOf = (node, source) => {
  const ranges = ts.getLeadingCommentRanges(source.text, node.pos) ?? []
  return ranges.map(({ end, pos }) => source.text.slice(pos, end)).findLast((text) => text.startsWith("/**"))
}

const isExported = (node) => node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true

const namesOf = (node) =>
  ts.isVariableStatement(node) ? node.declarationList.declarations.map(({ name }) => name.text) : [node.name?.text]

/** Returns the identifiers in a declaration that may be type names. */
const identifiersIn = (text) =>
  new Set(text.replace(/\/\*[\s\S]*?\*\/|"[^"]*"/g, "").match(/(?<![\w.])[A-Z]\w*(?:\.[A-Z]\w*)?/g))

/** Returns the modules from which names are imported. Resolves only relative imports. */
const importsOf = (source, path) => {
  const imports = new Map()
  for (const node of source.statements.filter(ts.isImportDeclaration)) {
    const from = node.moduleSpecifier.text
    const bindings = node.importClause?.namedBindings
    if (!from.startsWith(".") || bindings === undefined) continue
    const target = resolve(dirname(path), from)
    if (ts.isNamespaceImport(bindings)) imports.set(bindings.name.text, { target })
    else {for (const { name, propertyName } of bindings.elements) {
        imports.set(name.text, { target, name: (propertyName ?? name).text })
      }}
  }
  return imports
}

const readModule = (folder, module) => {
  const path = join(folder, "src", `${module}.ts`)
  const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true)
  const header = /^\/\*\*\n[\s\S]*?\*\//.exec(source.text)?.[0]
  const entries = new Map()
  for (const node of source.statements.filter(isExported)) {
    const { category = "other", see, text } = docOf(commentOf(node, source))
    for (const name of namesOf(node)) {
      // A schema and its type share a heading
      const entry = entries.get(name) ?? { name, category, declarations: [], see: [], text: "" }
      entry.declarations.push(declarationOf(node, source))
      entry.see.push(...see)
      if (!entry.text.includes(text)) {
        entry.text = text.length > entry.text.length && text.startsWith(entry.text)
          ? text
          : [entry.text, text].filter(Boolean).join("\n\n")
      }
      entries.set(name, entry)
    }
  }
  return { path, module, header: docOf(header).text, entries: [...entries.values()], imports: importsOf(source, path) }
}

const anchorOf = (name) => name.toLowerCase()

/** Returns links to the documented names that a declaration mentions. */
const linksOf = (entry, read, modules) => {
  const pageOf = (target) => modules.get(target)
  const here = new Set(read.entries.map(({ name }) => name))
  const links = new Map()
  for (const word of [...identifiersIn(entry.declarations.join("\n")), ...entry.see]) {
    if (word === undefined || word === entry.name) continue
    const [first, second] = word.split(".")
    const imported = read.imports.get(first)
    const page = imported === undefined ? undefined : pageOf(imported.target)
    const name = imported === undefined ? first : imported.name ?? second
    if (imported === undefined ? here.has(first) : page?.entries.some((entry) => entry.name === name)) {
      const to = page === undefined
        ? ""
        : relative(dirname(read.path), page.path).replaceAll("\\", "/").replace(/\.ts$/, ".md")
      links.set(name, `[${name}](${to === "" ? "" : to.startsWith(".") ? to : `./${to}`}#${anchorOf(name)})`)
    }
  }
  return [...links.values()]
}

const pageOf = (name, read, modules) => {
  const categories = Map.groupBy(read.entries, ({ category }) => category)
  const sections = [...categories].sort(([a], [b]) => a < b ? -1 : 1).map(([category, entries]) => {
    const parts = entries.map((entry) => {
      const links = linksOf(entry, read, modules)
      return [
        `### ${entry.name}`,
        `\`\`\`ts\n${entry.declarations.join("\n\n")}\n\`\`\``,
        links.length > 0 ? `See ${links.join(", ")}.` : "",
        entry.text
      ].filter(Boolean).join("\n\n")
    })
    return `## ${category[0].toUpperCase()}${category.slice(1)}\n\n${parts.join("\n\n")}`
  })
  const title = read.module.split("/").at(-1)
  const own = existsSync(join(dirname(read.path), "index.ts")) && name === "fake-redis"
    ? `@effect-simba/${name}`
    : `@effect-simba/${name}/${read.module}`
  return `# ${title}\n\n\`${own}\`\n\n${read.header}\n\n${sections.join("\n\n")}\n`
}

/** Returns the reference pages, each with its path, its text, and its first sentence. */
export const referencePages = () => {
  const all = packageFolders.flatMap((folder) => {
    const name = folder.split(/[\\/]/).at(-1)
    return publicModules(folder).filter((module) => !unstable.has(module)).map((module) => ({
      name,
      ...readModule(folder, module)
    }))
  })
  const modules = new Map(all.map((read) => [read.path, read]))
  return all.map((read) => ({
    path: `${read.name}/${read.module}.md`,
    package: read.name,
    module: read.module,
    summary: read.header.split(/(?<=\.)\s/)[0].replaceAll("\n", " "),
    text: pageOf(read.name, read, modules).replace(/\{@link (\S+?)\}/g, "`$1`")
  }))
}
