// The playground: a page that runs the library in the browser.
//
//   node playground/main.mjs                    builds it, and serves it on loopback
//   node playground/main.mjs --port 8080        serves it on this port
//   node playground/main.mjs --check            builds it, and plays every scenario in Chromium
//   node playground/main.mjs --check --short    skips pictures and measurements
//   node playground/main.mjs --build            only builds it, for a site that copies it
//   node playground/main.mjs --pictures         writes the pictures of docs/playground
import { fileURLToPath } from "node:url"
import { build } from "vite"
import { exportPictures } from "./check/pictures.mjs"
import { check } from "./check/scenarios.mjs"
import { serve } from "./check/server.mjs"

const portAt = process.argv.indexOf("--port")
const port = portAt === -1 ? 4174 : Number(process.argv[portAt + 1])

await build({ configFile: fileURLToPath(new URL("./vite.config.ts", import.meta.url)), logLevel: "warn" })
if (process.argv.includes("--check")) {
  process.exitCode = await check({ isShort: process.argv.includes("--short") }) === 0 ? 0 : 1
} else if (process.argv.includes("--pictures")) {
  await exportPictures()
} else if (!process.argv.includes("--build")) {
  const { url } = await serve(port)
  console.log(`the playground is at ${url}`)
}
