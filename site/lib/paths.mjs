// The folders that the site is built from and into.
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

export const site = dirname(dirname(fileURLToPath(import.meta.url)))
export const root = dirname(site)
export const docs = join(root, "docs")
/** The generated Markdown that VitePress reads. */
export const content = join(site, ".build/content")
/** The built site. */
export const dist = join(site, ".build/dist")
export const screenshots = join(site, ".build/screenshots")
