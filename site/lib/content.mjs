// Writes the input for VitePress: the guides, the examples that they link to, and an API reference that is generated
// from the doc comments.
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, extname, join, posix } from "node:path"
import { leftOut } from "./guides.mjs"
import { content, docs, root, site } from "./paths.mjs"
import { referencePages } from "./reference.mjs"

const write = (path, text) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

const pages = readdirSync(docs).filter((name) => name.endsWith(".md")).map((name) => basename(name, ".md"))
const pageOf = (name) => name === "README" ? "guides" : name
const examples = new Set()

/**
 * Translates a link on a page in `folder` to a link within the site. Returns undefined if the target is not part of the
 * site.
 */
const targetOf = (link, folder) => {
  const [path, anchor = ""] = link.split(/(?=#)/)
  if (/^[a-z]+:/.test(path) || path === "") return link
  const file = posix.join(folder, path)
  if (file === "README.md") return `./start.md${anchor}`
  const name = basename(file, ".md")
  if (file === `docs/${name}.md`) return leftOut.includes(name) ? undefined : `./${pageOf(name)}.md${anchor}`
  if (/^examples\/.*\.ts$/.test(file)) {
    examples.add(file)
    return `./${file.replace(/\.ts$/, ".md")}`
  }
  if (/\.(?:svg|json|yml)$/.test(file) && existsSync(join(root, file))) {
    // Pictures are embedded in the page, and other files become downloads
    const isPicture = extname(file) === ".svg"
    const copy = join(content, isPicture ? "files" : "public/files", basename(file))
    mkdirSync(dirname(copy), { recursive: true })
    copyFileSync(join(root, file), copy)
    return isPicture ? `./files/${basename(file)}` : `/files/${basename(file)}`
  }
  return undefined
}

/** Replaces screenshots of the playground with the live playground. */
const played = (text) =>
  text.replace(
    /!\[([^\]]*)\]\((?:docs\/)?playground\/([\w-]+)\.svg\)/g,
    (_, words, id) =>
      `<iframe class="playground" src="/play/index.html#scenario=${id}&seed=1&embed" title="${words}" loading="lazy"></iframe>`
  )

const withLinksOfSite = (text, folder = "docs") =>
  played(text).replace(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (_, mark, words, link) => {
    const target = targetOf(link, folder)
    // A plain HTML link, because VitePress's router would look for the file among the pages
    if (target?.startsWith("/files/")) return `<a href="${target}" download target="_self">${words}</a>`
    return target === undefined ? words : `${mark}[${words}](${target})`
  })

/** The README as the start page. Its list of pages is left out, because the sidebar replaces it. */
const startPage = () =>
  readFileSync(join(root, "README.md"), "utf8").replace(/^# .*$/m, "# Get started").replace(
    /^## Documentation$[\s\S]*/m,
    ""
  )

/** Removes text for contributors. */
const forReaders = (text) => text.replace(/^For contributors: .*$/m, "")

const writeGuides = () => {
  for (const name of pages) {
    if (leftOut.includes(name)) continue
    const text = forReaders(readFileSync(join(docs, `${name}.md`), "utf8"))
    write(join(content, `${pageOf(name)}.md`), withLinksOfSite(text))
  }
  write(join(content, "start.md"), withLinksOfSite(startPage(), "."))
  write(join(content, "index.md"), readFileSync(join(site, "index.md"), "utf8"))
  mkdirSync(join(content, "public"), { recursive: true })
  copyFileSync(join(site, "logo.svg"), join(content, "public/logo.svg"))
  cpSync(join(root, "playground/dist"), join(content, "public/play"), { recursive: true })
  for (const file of examples) {
    const code = readFileSync(join(root, file), "utf8")
    write(join(content, file.replace(/\.ts$/, ".md")), `# ${file}\n\n\`\`\`ts\n${code}\`\`\`\n`)
  }
}

const writeReference = () => {
  const pages = referencePages()
  for (const { path, text } of pages) write(join(content, "reference", path), text)
  const sections = [...new Set(pages.map((page) => page.package))].map((name) => {
    const rows = pages.filter((page) => page.package === name)
      .map(({ module, path, summary }) => `| [${module}](./${path}) | ${summary} |`)
    return `## @effect-simba/${name}\n\n| module | content |\n| --- | --- |\n${rows.join("\n")}\n`
  })
  write(join(content, "reference/index.md"), `# Reference\n\nEvery public module.\n\n${sections.join("\n")}`)
}

export const writeContent = () => {
  rmSync(content, { recursive: true, force: true })
  mkdirSync(content, { recursive: true })
  writeReference()
  writeGuides()
}
