// The VitePress configuration for the documentation site: navigation, sidebar and search.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { defineConfig } from "vitepress"
import { groupsOf, titleOf } from "../lib/guides.mjs"
import { content } from "../lib/paths.mjs"
import { miniSearch } from "../lib/search.mjs"

const guide = (page) => ({
  text: titleOf(readFileSync(join(content, `${page}.md`), "utf8")),
  link: `/${page}`
})

const guides = readdirSync(content).filter((name) => name.endsWith(".md") && name !== "index.md")
  .map((name) => name.slice(0, -".md".length))

const modulesOf = (folder) => {
  const path = join(content, "reference", folder)
  if (!existsSync(path)) return []
  return readdirSync(path).filter((name) => name.endsWith(".md")).sort()
    .map((name) => name.slice(0, -".md".length))
    .map((name) => ({ text: name, link: `/reference/${folder}/${name}` }))
}

const reference = ["core", "core/streams", "redis", "redis/streams", "testkit", "testkit/streams", "fake-redis"]
  .map((folder) => ({
    text: `@effect-simba/${folder}`,
    collapsed: !folder.startsWith("core"),
    items: modulesOf(folder)
  }))

export default defineConfig({
  title: "effect-simba",
  description: "Distributed mutexes, leadership and stream ownership on Redis for Effect",
  srcDir: ".build/content",
  outDir: ".build/dist",
  cacheDir: ".build/cache",
  cleanUrls: true,
  lastUpdated: false,
  head: [["link", { rel: "icon", href: "/logo.svg" }]],
  themeConfig: {
    logo: "/logo.svg",
    // A local index, so that search needs no external service
    search: { provider: "local", options: { miniSearch } },
    outline: [2, 3],
    nav: [
      { text: "Get started", link: "/start" },
      { text: "Guides", link: "/guides" },
      { text: "Playground", link: "/playground" },
      { text: "Reference", link: "/reference/" },
      { text: "Operating", link: "/runbooks" }
    ],
    sidebar: {
      "/reference/": [{ text: "Reference", link: "/reference/" }, ...reference],
      "/": groupsOf(guides).map(({ pages, text }) => ({
        text,
        items: pages.filter((page) => guides.includes(page)).map(guide)
      }))
    }
  }
})
