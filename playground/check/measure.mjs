// Measures the page's size, the time until it is interactive, and its frame rate.
import { readdirSync, readFileSync } from "node:fs"
import { availableParallelism, loadavg } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { dist } from "./server.mjs"

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(0)} kB`

/** Measures what the first view loads, without the Lua VM. */
export const sizes = () => {
  const html = readFileSync(join(dist, "index.html"), "utf8")
  const files = ["index.html", ...readdirSync(join(dist, "assets")).map((name) => `assets/${name}`)]
    .filter((name) => name === "index.html" || html.includes(name))
  const total = files.reduce((sum, name) => sum + gzipSync(readFileSync(join(dist, name)), { level: 9 }).length, 0)
  console.log(`first view, compressed, without the Lua VM: ${kilobytes(total)}`)
  if (total > 300_000) throw new Error(`the first view has ${kilobytes(total)}; the limit is 300 kB`)
}

const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * part)]

/** Returns whether a processor is free. On a busy machine, elapsed time says little about the page. */
const isIdle = () => loadavg()[0] < availableParallelism()

/**
 * Measures the time until the first scenario plays: elapsed time, and time on the page's main thread. Returns the best
 * of three runs.
 */
const untilInteractive = async (browser, url) => {
  const best = { clock: Infinity, thread: Infinity }
  for (let i = 0; i < 3; i++) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
    const page = await context.newPage()
    const session = await context.newCDPSession(page)
    await session.send("Performance.enable", { timeDomain: "threadTicks" })
    const start = performance.now()
    await page.goto(url)
    await page.waitForSelector("article[data-state='playing']")
    best.clock = Math.min(best.clock, performance.now() - start)
    const { metrics } = await session.send("Performance.getMetrics")
    best.thread = Math.min(best.thread, 1000 * metrics.find(({ name }) => name === "TaskDuration").value)
    await context.close()
  }
  return best
}

/** Measures frames while twelve processes contend in real time, with ten minutes of history. */
const frames = async (browser, url) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  await page.goto(`${url}#scenario=free&seed=1`)
  await page.waitForSelector("article[data-scenario='free']")
  await page.evaluate(async () => {
    const { player } = globalThis.playground
    while (player.world.live.processes().length < 12) player.perform({ verb: "add" })
    player.step(1000)
    for (const { name } of player.world.live.processes()) player.perform({ verb: "contend", target: name })
    for (let minute = 0; minute < 10; minute++) {
      player.step(60_000)
      await new Promise((resolve) => setTimeout(resolve, 0))
    }
  })
  const worst = { work: 0 }
  for (const whole of [false, true]) {
    const found = await page.evaluate(async (whole) => {
      const { player } = globalThis.playground
      player.catchUp()
      if (whole) player.zoom(700_000 / (player.to - player.from))
      player.setSpeed(1)
      if (!player.isPlaying) player.toggle()
      await new Promise((resolve) => setTimeout(resolve, 500))
      player.frames.length = 0
      player.work.length = 0
      await new Promise((resolve) => setTimeout(resolve, 4000))
      return { frames: player.frames.slice(), work: player.work.slice() }
    }, whole)
    const figures = {
      median: quantile(found.frames, 0.5),
      late: quantile(found.frames, 0.95),
      work: quantile(found.work, 0.5)
    }
    console.log(
      `12 processes, ten minutes of history, ${whole ? "showing all of it" : "showing the present"}: ` +
        `a frame every ${figures.median.toFixed(1)} ms (p95: ${figures.late.toFixed(1)}), ` +
        `work ${figures.work.toFixed(1)} ms (p95: ${quantile(found.work, 0.95).toFixed(1)})`
    )
    worst.work = Math.max(worst.work, figures.work)
  }
  await context.close()
  return worst
}

export const measure = async (browser, url) => {
  const { clock, thread } = await untilInteractive(browser, url)
  const wait = isIdle() ? clock : thread
  console.log(`interactive after ${clock.toFixed(0)} ms, of which ${thread.toFixed(0)} ms on the main thread`)
  const { work } = await frames(browser, url)
  if (wait > 2000) throw new Error(`interactive only after ${wait.toFixed(0)} ms`)
  // Other load on the machine delays frames, so only the page's own work must fit into a frame
  if (work > 16.6) throw new Error(`a frame takes ${work.toFixed(1)} ms of work`)
}
