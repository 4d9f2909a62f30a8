// Plays every scenario in Chromium, and asserts that the page shows its claims as met.
import { mkdirSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { chromium } from "playwright-core"
import { executable } from "./browser.mjs"
import { measure, sizes } from "./measure.mjs"
import { serve } from "./server.mjs"

const pictures = fileURLToPath(new URL("../.screenshots", import.meta.url))
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js")

const must = (condition, problem) => {
  if (!condition) throw new Error(problem)
}

const appearances = ["desktop", "phone"].flatMap((size) =>
  ["light", "dark"].map((colorScheme) => ({
    name: `${size}-${colorScheme}`,
    colorScheme,
    viewport: size === "phone" ? { width: 390, height: 844 } : { width: 1280, height: 900 }
  }))
)

/** Opens a page and records its errors, warnings and requests to other servers. There must be none. */
const open = async (browser, url, appearance) => {
  const context = await browser.newContext({ ...appearance, reducedMotion: "reduce" })
  const page = await context.newPage()
  const problems = []
  page.on("pageerror", (error) => problems.push(String(error)))
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()))
  page.on("request", (request) => {
    if (!/^(?:data|blob):/.test(request.url()) && !request.url().startsWith(url)) {
      problems.push(`requests ${request.url()}`)
    }
  })
  const go = async (hash) => {
    await page.goto("about:blank")
    await page.goto(`${url}#${hash}`)
    await page.waitForSelector("article[data-state]")
  }
  const play = (until) =>
    page.evaluate((until) => {
      const { player } = globalThis.playground
      player.step(until - player.world.now)
    }, until)
  return { context, page, problems, go, play, close: () => context.close() }
}

const accessible = async ({ page }) => {
  await page.addScriptTag({ path: axe })
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run()
    return violations.map(({ help, nodes }) => `${help}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`)
  })
  must(found.length === 0, `not accessible:\n${found.join("\n")}`)
}

const widthFits = async ({ page }) => {
  const [width, most] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
  must(width <= most, `the page scrolls horizontally: it is ${width} px wide, and ${most} px are visible`)
}

/** Plays a scenario from start to end. All of its claims must hold. */
const playScenario = async (shown, { duration, id }, picture) => {
  await shown.go(`scenario=${id}&seed=1`)
  await shown.page.waitForSelector(`article[data-scenario="${id}"]`)
  for (const part of [0.3, 0.6, 1]) {
    await shown.play(duration * part)
    await shown.page.waitForTimeout(60)
    await picture(`${id}-${Math.round(100 * part)}`)
  }
  await shown.page.waitForSelector("article[data-state='over']")
  const claims = await shown.page.$$eval(
    "[data-claim]",
    (items) => items.map((item) => [item.dataset.claim, item.textContent])
  )
  must(claims.length > 0, "the scenario has no claims")
  const broken = claims.filter(([state]) => state !== "held")
  must(broken.length === 0, broken.map(([, text]) => text.trim()).join("; "))
  const svg = await shown.page.evaluate(() => globalThis.playground.picture())
  must(svg.startsWith("<svg") && svg.length > 2000, "no picture is exported")
}

/** The URL records the reader's actions, and opening it repeats them. */
const repeats = async (shown) => {
  const { page } = shown
  const stateOf = () => page.$$eval("[data-process]", (cells) => cells.map((cell) => cell.textContent))
  const events = () =>
    page.evaluate(() => globalThis.playground.player.world.live.events.map(({ _tag, at }) => `${_tag} ${at}`))
  await shown.go("scenario=free&seed=5")
  await page.waitForSelector("article[data-scenario='free']")
  await shown.play(1000)
  await page.click("button[aria-label='c1: acquire']")
  await shown.play(1500)
  await page.click("button[aria-label='c2: acquire']")
  await shown.play(3000)
  must((await stateOf())[0].startsWith("leading"), "c1 does not lead")
  must((await stateOf())[1] === "waiting, 1st", `c2 is ${(await stateOf())[1]}`)
  await page.click("button[aria-label='c1: crash']")
  await shown.play(12_000)
  must((await stateOf())[1].startsWith("leading"), "c2 does not take over")
  await page.click("text=fail over")
  await page.click("button[aria-label='c2: skew clock']")
  const before = await events()
  const hash = await page.evaluate(() => location.hash.slice(1))
  must(/acts=/.test(hash), `the URL's fragment is #${hash}`)
  await shown.go(hash)
  await page.waitForSelector("article[data-scenario='free']")
  const after = await events()
  must(JSON.stringify(after) === JSON.stringify(before), "opening the URL produces a different history")
  await page.click("summary")
  await page.fill("input[type=search]", "kill")
  await page.waitForFunction(() => document.querySelectorAll(".log li").length === 1)
  await page.keyboard.press("Escape")
}

/** Plays a scenario with the keyboard only. */
const keyboard = async (shown) => {
  const { page } = shown
  await shown.go("scenario=fair-hand-off&seed=2")
  await page.waitForSelector("article[data-scenario='fair-hand-off']")
  const now = () => page.evaluate(() => globalThis.playground.player.world.now)
  await page.keyboard.press(".")
  must(await now() === 50, `a step advances to ${await now()} ms`)
  await page.keyboard.press(" ")
  await page.waitForSelector("article[data-state='playing']")
  await page.keyboard.press(" ")
  await page.waitForSelector("article[data-state='paused']")
  await page.keyboard.press("e")
  await page.waitForSelector("article[data-state='over']")
  const width = () => page.evaluate(() => globalThis.playground.player.to - globalThis.playground.player.from)
  const before = await width()
  await page.keyboard.press("+")
  must(await width() < before, "the + key does not zoom in")
}

/** Opens seeds by links like those that the simulator prints, until one fails. Most of this plan's seeds do. */
const failingSeed = async (shown, picture) => {
  const { page } = shown
  const seeds = [1, 2, 3, 4, 5, 6, 7, 8]
  for (const seed of seeds) {
    await shown.go(`plan=careless&seed=${seed}`)
    await page.waitForSelector("article[data-state='over']", { timeout: 120_000 })
    if (await page.getAttribute("[data-violations]", "data-violations") === "0") continue
    const found = await page.textContent("[data-violations]")
    must(/writes are fenced/.test(found ?? ""), `the page shows these violations: ${found}`)
    await page.click(".claims button")
    await page.waitForTimeout(60)
    return picture("failing-seed")
  }
  throw new Error(`none of the seeds ${seeds.join(", ")} fails`)
}

export const check = async ({ isShort }) => {
  const path = executable()
  if (path === undefined) {
    console.log("not played: there is no chromium on the PATH")
    return 0
  }
  rmSync(pictures, { recursive: true, force: true })
  mkdirSync(pictures, { recursive: true })
  const { server, url } = await serve(0)
  const browser = await chromium.launch({ executablePath: path, args: ["--no-sandbox"] })
  const failed = []
  let count = 0
  const attempt = async (name, run) => {
    count++
    const start = performance.now()
    try {
      await run()
      console.log(`${name}: ok (${((performance.now() - start) / 1000).toFixed(1)} s)`)
    } catch (error) {
      failed.push(name)
      console.log(`${name}: FAILED\n${error instanceof Error ? error.message : error}`)
    }
  }
  try {
    const first = await open(browser, url, appearances[0])
    await first.go("scenario=fair-hand-off")
    await first.page.waitForSelector("article[data-scenario]")
    const scenarios = await first.page.evaluate(() => globalThis.playground.scenarios)
    await first.close()
    for (const scenario of scenarios.filter(({ duration }) => duration !== null)) {
      await attempt(scenario.id, async () => {
        for (const appearance of isShort ? appearances.slice(0, 1) : appearances) {
          const shown = await open(browser, url, appearance)
          const picture = (name) =>
            isShort ? undefined : shown.page.screenshot({ path: join(pictures, `${name}-${appearance.name}.png`) })
          try {
            await playScenario(shown, scenario, picture)
            await widthFits(shown)
            await accessible(shown)
            must(shown.problems.length === 0, shown.problems.join("\n"))
          } finally {
            await shown.close()
          }
        }
      })
    }
    const shown = await open(browser, url, appearances[0])
    const picture = (name) => isShort ? undefined : shown.page.screenshot({ path: join(pictures, `${name}.png`) })
    await attempt("the free scenario and its URL", () => repeats(shown))
    await attempt("the keyboard", () => keyboard(shown))
    await attempt("a failing seed", () => failingSeed(shown, picture))
    await attempt("a silent console", () => must(shown.problems.length === 0, shown.problems.join("\n")))
    await shown.close()
    await attempt("size", () => sizes())
    if (!isShort) await attempt("speed", () => measure(browser, url))
  } finally {
    await browser.close()
    server.close()
  }
  if (!isShort) console.log("pictures are in playground/.screenshots")
  console.log(`${count} checks, ${failed.length} failed`)
  return failed.length
}
