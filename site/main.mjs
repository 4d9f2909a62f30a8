// Builds the documentation site: the guides, an API reference from the doc comments, and a local search.
//
//   node site/main.mjs                build it and serve it on loopback
//   node site/main.mjs --port 8080    at this port
//   node site/main.mjs --check        build it, follow its links, search it, and open it in a browser if there is one
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { build } from "vitepress"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import { checkInBrowser } from "./lib/browser.mjs"
import { writeContent } from "./lib/content.mjs"
import { checkLinks } from "./lib/links.mjs"
import { root, site } from "./lib/paths.mjs"
import { checkSearch } from "./lib/search.mjs"
import { serve } from "./lib/server.mjs"

const { values } = commandLine({
  options: { port: { type: "string", default: "4173" }, check: { type: "boolean", default: false } }
}, { whole: ["port"] })

const { status } = spawnSync(process.execPath, [join(root, "playground/main.mjs"), "--build"], { stdio: "inherit" })
if (status !== 0) throw new Error("the playground could not be built")
writeContent()
await build(site)
const { checked, dead, pages } = checkLinks()
console.log(`${pages} pages with ${checked} links, ${dead.length} dead`)
if (dead.length > 0) {
  console.error(dead.join("\n"))
  process.exitCode = 1
} else if (values.check) {
  const { lost, words } = await checkSearch()
  console.log(`${words} search words, ${lost.length} not found`)
  if (lost.length > 0) {
    console.error(lost.join("\n"))
    process.exitCode = 1
  }
  await checkInBrowser()
} else {
  const { url } = await serve(Number(values.port))
  console.log(`the site is at ${url}`)
}
