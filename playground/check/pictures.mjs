// Writes the pictures in docs/playground: the picture that the page exports at the end of each scenario.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { chromium } from "playwright-core"
import { executable } from "./browser.mjs"
import { serve } from "./server.mjs"

const folder = fileURLToPath(new URL("../../docs/playground", import.meta.url))

export const exportPictures = async () => {
  mkdirSync(folder, { recursive: true })
  const { server, url } = await serve(0)
  const browser = await chromium.launch({ executablePath: executable(), args: ["--no-sandbox"] })
  try {
    const page = await browser.newPage()
    await page.goto(`${url}#scenario=free`)
    const scenarios = await page.evaluate(() => globalThis.playground.scenarios)
    for (const { duration, id } of scenarios) {
      if (duration === null) continue
      await page.goto("about:blank")
      await page.goto(`${url}#scenario=${id}&seed=1`)
      await page.waitForSelector(`article[data-scenario="${id}"]`)
      const svg = await page.evaluate((duration) => {
        const { picture, player } = globalThis.playground
        player.step(duration - player.world.now)
        return picture(900)
      }, duration)
      writeFileSync(join(folder, `${id}.svg`), svg)
      console.log(`docs/playground/${id}.svg: ${(svg.length / 1000).toFixed(0)} kB`)
    }
  } finally {
    await browser.close()
    server.close()
  }
}
