// Where the parts of the site are.
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

export const site = dirname(dirname(fileURLToPath(import.meta.url)))
export const root = dirname(site)
export const docs = join(root, "docs")
/** Markdown as VitePress reads it. */
export const content = join(site, ".build/content")
/** The finished site. */
export const dist = join(site, ".build/dist")
export const screenshots = join(site, ".build/screenshots")
