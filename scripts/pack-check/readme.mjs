// Runs the README's programs as a reader would: under their file names, in a folder that has the packages installed.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { fencedBlocks } from "../lib/doc-blocks.mjs"
import { root } from "../lib/workspace.mjs"
import { binOf } from "./consumer.mjs"
import { run, start } from "./processes.mjs"
import { problem } from "./report.mjs"

const url = "redis://localhost:6379"

const text = () => readFileSync(join(root, "README.md"), "utf8")

/** The arguments of each install line, in page order. */
export const installLines = () =>
  [...text().matchAll(/^npm install (.+)$|`npm install ([^`]+)`/gm)].map(([, line, inline]) =>
    (line ?? inline).split(/\s+/)
  )

/** The programs, keyed by the file name in their first line. */
const programs = () => {
  const blocks = fencedBlocks(text()).filter(({ language }) => language === "ts")
  return new Map(blocks.map(({ code, line }) => {
    const name = /^\/\/ (\S+)$/m.exec(code.split("\n")[0])?.[1]
    if (name === undefined) problem(`the program at line ${line} in the README does not name a file`)
    return [name, code]
  }))
}

/** Runs a program until its output matches, then stops it with SIGINT, as Ctrl-C does. */
const until = async (node, file, options, pattern, act = async () => undefined) => {
  const { child, ended } = start(node, [file], options)
  let shown = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (shown += chunk))
  const end = performance.now() + 30_000
  for (let acted = false; !pattern.test(shown) && child.exitCode === null && performance.now() < end;) {
    await setTimeout(200)
    if (!acted) acted = await act()
  }
  child.kill("SIGINT")
  const giveUp = Symbol()
  const result = await Promise.race([ended, setTimeout(10_000, giveUp, { ref: false })])
  if (!pattern.test(shown)) problem(`${file} in the README does not print ${pattern}:\n${shown}`)
  if (result === giveUp) problem(`${file} in the README does not exit on Ctrl-C:\n${shown}`)
}

/**
 * Runs all programs, or only the first one if this Node cannot run TypeScript (`canStrip`). The packages are installed
 * in `installed`, which is `folder` or an ancestor of it.
 */
export const runReadme = async ({ canStrip, env, folder, installed = folder, node, redisUrl }) => {
  mkdirSync(folder, { recursive: true })
  const known = programs()
  const options = { cwd: folder, env: { ...env, REDIS_URL: redisUrl, NO_COLOR: "1" } }
  for (const [name, code] of known) {
    if (name.startsWith("main.") && !code.includes(url)) problem(`${name} in the README does not name ${url}`)
    writeFileSync(join(folder, name), code.replaceAll(url, redisUrl))
  }
  const first = await run(node, ["main.mjs"], options)
  if (first.failed || !/token \d+/.test(first.text)) problem(`main.mjs in the README:\n${first.text}`)
  if (!canStrip) return "the first program"
  await until(node, "leader.mts", options, /cleaning/)
  const { host, port } = { host: new URL(redisUrl).hostname, port: new URL(redisUrl).port }
  const send = async () => {
    const sent = await run("redis-cli", ["-h", host, "-p", port, "XADD", "orders:eu", "*", "amount", "42"])
    if (sent.failed) problem(`redis-cli:\n${sent.text}`)
    return true
  }
  await until(node, "orders.mts", options, /\b42\b/, send)
  const test = await run(node, [binOf(installed, "vitest"), "run"], options)
  if (test.failed) problem(`report.test.ts in the README:\n${test.text}`)
  return `${[...known.keys()].join(", ")}`
}
