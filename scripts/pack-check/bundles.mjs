// Checks the packed packages' bundle sizes, and that bundles leave out unused code. The limits are the measured sizes
// plus one or two percent. Lower them when the code shrinks, and raise them only on purpose. `pnpm bench:size` lists
// the parts.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { brotliCompressSync, constants } from "node:zlib"
import { rolldown } from "rolldown"
import { problem } from "./report.mjs"

const operations = `export { acquire, withLock } from "@effect-simba/core/Mutex"`

/** Texts from modules that a program must not include unless it uses them. */
const leadership = ["Leadership begins", "simba_leadership", "simba_job"]
const streams = ["simba_stream", "lbs-input"]
const cluster = ["clusterRetryStrategy", "refreshSlotsCache"]
const doctor = ["notify-keyspace-events"]

/** The bundles and their limits, in bytes: minified, compressed with brotli, without effect and ioredis. */
const bundles = [
  {
    name: "a program that only locks",
    code: `${operations}\nexport { layer } from "@effect-simba/redis/RedisMutex"`,
    most: 41_500,
    without: [...leadership, ...streams, ...cluster, ...doctor]
  },
  {
    name: "one on another provider of Redis",
    code: `${operations}\nexport { layerRedis } from "@effect-simba/redis/RedisMutex"`,
    most: 33_700,
    without: [...leadership, ...streams, ...cluster, ...doctor, "connectTimeout"]
  },
  {
    name: "one in memory",
    code: `export { acquire, layerMemory, withLock } from "@effect-simba/core/Mutex"`,
    most: 23_300,
    without: [...leadership, ...streams]
  },
  {
    name: "core and redis without streams",
    code: `export * as core from "@effect-simba/core"\nexport * as redis from "@effect-simba/redis"`,
    most: 61_800,
    // `RedisDoctor` knows the keys of streams
    without: ["simba_stream"]
  }
]

const bundled = async (folder, code) => {
  const entry = join(folder, "bundle-entry.mjs")
  writeFileSync(entry, code)
  const build = await rolldown({ input: entry, cwd: folder, platform: "node", external: /^(?:effect|ioredis|node:)/ })
  const { output } = await build.generate({ minify: true, codeSplitting: false })
  await build.close()
  return output.map(({ code }) => code).join("")
}

/** Checks all bundles. `folder` has the packages installed. */
export const checkBundles = async (folder) => {
  const said = []
  for (const { code, most, name, without } of bundles) {
    const text = await bundled(folder, code)
    const bytes = brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length
    said.push(`${name} ${bytes}`)
    if (bytes > most) problem(`the bundle for ${name} has ${bytes} bytes; at most ${most} are allowed`)
    for (const marker of without) {
      if (text.includes(marker)) problem(`the bundle for ${name} contains code that it does not use: ${marker}`)
    }
  }
  return `bytes after brotli: ${said.join(", ")}`
}
