// Writes the input of VitePress: the guides, the examples that they link to, and a reference from the doc comments.
import { spawnSync } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { basename, dirname, extname, join, posix, relative } from "node:path"
import { leftOut } from "./guides.mjs"
import { content, docs, root, site } from "./paths.mjs"

const write = (path, text) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

const pages = readdirSync(docs).filter((name) => name.endsWith(".md")).map((name) => basename(name, ".md"))
const pageOf = (name) => name === "README" ? "guides" : name
const examples = new Set()

/** Where a link of a guide leads on the site; undefined where the site has no such page. */
const targetOf = (link) => {
  const [path, anchor = ""] = link.split(/(?=#)/)
  if (/^[a-z]+:/.test(path) || path === "") return link
  if (path === "../README.md") return "./index.md"
  const name = basename(path, ".md")
  if (path === `${name}.md`) return leftOut.includes(name) ? undefined : `./${pageOf(name)}.md${anchor}`
  const file = posix.normalize(`docs/${path}`)
  if (/^examples\/.*\.ts$/.test(file)) {
    examples.add(file)
    return `./${file.replace(/\.ts$/, ".md")}`
  }
  if (/\.(?:svg|json|yml)$/.test(file) && existsSync(join(root, file))) {
    // Pictures are part of a page, other files are downloads
    const isPicture = extname(file) === ".svg"
    const copy = join(content, isPicture ? "files" : "public/files", basename(file))
    mkdirSync(dirname(copy), { recursive: true })
    copyFileSync(join(root, file), copy)
    return isPicture ? `./files/${basename(file)}` : `/files/${basename(file)}`
  }
  return undefined
}

const withLinksOfSite = (text) =>
  text.replace(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (_, mark, words, link) => {
    const target = targetOf(link)
    // A plain link lets the browser fetch a file, which the router of the site would look for among its pages
    if (target?.startsWith("/files/")) return `<a href="${target}" download target="_self">${words}</a>`
    return target === undefined ? words : `${mark}[${words}](${target})`
  })

const writeGuides = () => {
  for (const name of pages) {
    if (leftOut.includes(name)) continue
    write(join(content, `${pageOf(name)}.md`), withLinksOfSite(readFileSync(join(docs, `${name}.md`), "utf8")))
  }
  write(join(content, "index.md"), readFileSync(join(site, "index.md"), "utf8"))
  mkdirSync(join(content, "public"), { recursive: true })
  copyFileSync(join(site, "logo.svg"), join(content, "public/logo.svg"))
  for (const file of examples) {
    const code = readFileSync(join(root, file), "utf8")
    write(join(content, file.replace(/\.ts$/, ".md")), `# ${file}\n\n\`\`\`ts\n${code}\`\`\`\n`)
  }
}

const reference = join(content, "reference")

const markdownBelow = (folder) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
    .map((entry) => join(entry.parentPath, entry.name))

const noise = new Set(["Since", "Extends", "Constructors", "Inherited from", "Overrides"])

/** Without the sections that say the same of every name: the version, and the members of the classes of Effect. */
const withoutNoise = (text) => {
  const kept = []
  let isCode = false
  let skipped = Infinity
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) isCode = !isCode
    const [, marks, title] = (isCode ? null : /^(#+) (.+)$/.exec(line)) ?? []
    if (marks !== undefined && marks.length <= skipped) skipped = noise.has(title) ? marks.length : Infinity
    if (!isCode && line === "***") skipped = Infinity
    if (skipped === Infinity) kept.push(line)
  }
  return kept.join("\n")
}

/** The comment at the start of a module, which TypeDoc leaves out. */
const introductionOf = (name, module) => {
  const source = readFileSync(join(root, "packages", name, "src", `${module}.ts`), "utf8")
  const comment = /^\/\*\*\n([\s\S]*?)\*\//.exec(source)?.[1] ?? ""
  return comment.replace(/^ \* ?/gm, "").replace(/^@[\s\S]*$/m, "").trim()
}

/** `core/src/Mutex` of the repository is `core/Mutex` in an import. */
const writeReference = () => {
  const typedoc = join(site, "node_modules/typedoc/bin/typedoc")
  const { error, status } = spawnSync(process.execPath, [typedoc], { cwd: site, stdio: "inherit" })
  if (error !== undefined || status !== 0) throw error ?? new Error("TypeDoc failed")
  rmSync(join(reference, "README.md"))
  for (const name of ["core", "redis", "testkit", "fake-redis"]) {
    const folder = join(reference, name)
    renameSync(join(folder, "src"), `${folder}.moved`)
    rmSync(folder, { recursive: true })
    renameSync(`${folder}.moved`, folder)
  }
  const modules = markdownBelow(reference).sort()
  for (const path of modules) {
    const module = relative(reference, path).replaceAll("\\", "/").replace(/\.md$/, "")
    const [name, ...rest] = module.split("/")
    const text = readFileSync(path, "utf8")
      .replace(
        /^# .*$/m,
        () =>
          `# ${rest.at(-1)}\n\n\`@effect-simba/${name}/${rest.join("/")}\`\n\n${introductionOf(name, rest.join("/"))}`
      )
      .replace(/\]\(\.\.\/((?:\.\.\/)+)(core|redis|testkit|fake-redis)\/src\//g, "]($1$2/")
    writeFileSync(path, withoutNoise(text))
  }
  const list = (name) =>
    modules.map((path) => relative(reference, path).replaceAll("\\", "/"))
      .filter((path) => path.startsWith(`${name}/`))
      .map((path) => `- [${path.replace(/^[\w-]+\//, "").replace(/\.md$/, "")}](./${path})`)
      .join("\n")
  const sections = ["core", "redis", "testkit", "fake-redis"].map((name) =>
    `## @effect-simba/${name}\n\n${list(name)}\n`
  )
  write(
    join(reference, "index.md"),
    `# Reference\n\nEvery public module, from its doc comments.\n\n${sections.join("\n")}`
  )
}

export const writeContent = () => {
  rmSync(content, { recursive: true, force: true })
  mkdirSync(content, { recursive: true })
  writeReference()
  writeGuides()
}
