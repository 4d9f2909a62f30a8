// The folders from which and into which the site is built.
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

export const site = dirname(dirname(fileURLToPath(import.meta.url)))
export const root = dirname(site)
export const docs = join(root, "docs")
/** The generated Markdown, which VitePress reads. */
export const content = join(site, ".build/content")
/** The built site. */
export const dist = join(site, ".build/dist")
export const screenshots = join(site, ".build/screenshots")
