// Opens the built site in Chromium, navigates and searches like a reader, and takes screenshots.
import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { chromium } from "playwright-core"
import { content, screenshots } from "./paths.mjs"
import { serve } from "./server.mjs"

const executable = () =>
  ["chromium", "chromium-browser", "google-chrome"].find((name) => spawnSync(name, ["--version"]).status === 0)

const must = (condition, problem) => {
  if (!condition) throw new Error(problem)
}

const readPages = () =>
  readdirSync(content).filter((name) => name.endsWith(".md") && name !== "index.md")
    .map((name) => name.replace(/\.md$/, "")).concat("reference/core/Mutex", "reference/core/streams/StreamClient")

export const checkInBrowser = async () => {
  const command = executable()
  if (command === undefined) return console.log("not opened in a browser: no Chromium on the PATH")
  mkdirSync(screenshots, { recursive: true })
  const { server, url } = await serve(0)
  const path = spawnSync("which", [command], { encoding: "utf8" }).stdout.trim()
  const browser = await chromium.launch({ executablePath: path, args: ["--no-sandbox"] })
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
    const page = await context.newPage()
    const problems = []
    page.on("pageerror", (error) => problems.push(String(error)))
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()))
    page.on("request", (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith("data:")) {
        problems.push(`external request: ${request.url()}`)
      }
    })
    const picture = (name) => page.screenshot({ path: join(screenshots, `${name}.png`) })

    /** Requires that no code block or table is cut off at the right edge. */
    const wholeCode = async (path) => {
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll(".vp-doc pre, .vp-doc table")].filter((element) =>
          element.scrollWidth > element.clientWidth + 1
        ).map((element) => element.textContent.slice(0, 80))
      )
      must(cut.length === 0, `${path} is cut at the right edge: ${cut.join("; ")}`)
    }

    await page.goto(url)
    must((await page.textContent("h1"))?.includes("effect-simba"), "the first page has no title")
    await picture("home")

    await page.click("text=Get started >> nth=0")
    await page.waitForURL("**/start")
    await page.waitForSelector("text=npm install effect@")
    await page.waitForSelector("text=main.mjs")
    await picture("start")

    await page.goto(url)
    await page.click("text=Which to use")
    await page.waitForURL("**/choosing")
    await page.waitForSelector("h1:has-text('Which to use')")
    await picture("guide")

    await page.click(".VPNavBarSearch button")
    await page.fill("#localsearch-input", "forced release")
    await page.waitForSelector("#localsearch-list li")
    await picture("search")
    const found = await page.textContent("#localsearch-list")
    must(/[Ff]orce/.test(found ?? ""), `the search found ${found}`)
    await page.press("#localsearch-input", "Enter")
    await page.waitForSelector("#localsearch-input", { state: "detached" })
    must(!page.url().endsWith("/choosing"), "a search result does not open its page")

    await page.goto(`${url}/reference/core/Mutex`)
    await page.waitForSelector("h3:has-text('withLock')")
    await page.click("main a:has-text('LeaseLost') >> nth=0")
    await page.waitForURL("**/SimbaError#leaselost")
    await page.goto(`${url}/reference/core/Mutex#forcerelease`)
    const signature = page.locator("h3:has-text('forceRelease') + div pre")
    must(
      (await signature.textContent())?.includes("(name: string) => Effect.Effect<Ownership"),
      "a signature is incomplete"
    )
    must(await signature.locator("span[style*=shiki]").count() > 3, "signatures are not highlighted")
    await picture("reference")

    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 })
      for (const path of readPages()) {
        await page.goto(`${url}/${path}`)
        await wholeCode(path)
      }
    }

    await page.goto(`${url}/runbooks`)
    await page.waitForSelector("h1")
    const width = await page.evaluate(() => document.documentElement.scrollWidth)
    must(width <= 390, `the page is too wide for a phone: ${width} px`)
    await picture("phone")

    must(problems.length === 0, problems.join("\n"))
    console.log(
      `opened in ${path}: pages, links, search, a phone-sized window; screenshots are in site/.build/screenshots`
    )
  } finally {
    await browser.close()
    server.close()
  }
}
