// Checks the links within the built site: each target must exist and contain the link's anchor.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join, posix, relative } from "node:path"
import { dist } from "./paths.mjs"

const decode = (text) => decodeURIComponent(text.replaceAll("&amp;", "&"))

/** Returns the file that the server sends for this path, or undefined if there is none. */
const fileOf = (path) =>
  [path, `${path}.html`, posix.join(path, "index.html")]
    .find((file) => statSync(join(dist, file), { throwIfNoEntry: false })?.isFile() === true)

/** Checks all links. Returns the numbers of pages and links, and the dead links. */
export const checkLinks = () => {
  const pages = readdirSync(dist, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".html"))
    .map((entry) => relative(dist, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
  const html = new Map(pages.map((page) => [page, readFileSync(join(dist, page), "utf8")]))
  const idsOf = new Map(
    [...html].map(([page, text]) => [page, new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => decode(id)))])
  )
  const dead = []
  let checked = 0
  for (const [page, text] of html) {
    for (const [, link] of text.matchAll(/<(?:a|img|link|script)\b[^>]*? (?:href|src)="([^"]+)"/g)) {
      if (/^(?:[a-z]+:|\/\/)/.test(link)) continue
      checked += 1
      const [path, anchor = ""] = decode(link).split("#")
      const target = path === ""
        ? page
        : fileOf(
          posix.normalize(posix.join("/", path.startsWith("/") ? "" : posix.dirname(page), path)).slice(1) ||
            "index.html"
        )
      if (target === undefined || !existsSync(join(dist, target))) dead.push(`${page}: ${link}`)
      else if (anchor !== "" && html.has(target) && !idsOf.get(target).has(anchor)) {
        dead.push(`${page}: ${link} (no such heading)`)
      }
    }
  }
  return { pages: pages.length, checked, dead }
}
