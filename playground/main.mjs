// The playground: a page that runs the library in the browser.
//
//   node playground/main.mjs                    builds it, and serves it on loopback
//   node playground/main.mjs --port 8080        serves it on this port
//   node playground/main.mjs --check            builds it, and plays every scenario in Chromium
//   node playground/main.mjs --check --short    skips pictures and measurements
//   node playground/main.mjs --build            only builds it, for a site that copies it
//   node playground/main.mjs --pictures         writes the pictures in docs/playground
import { fileURLToPath } from "node:url"
import { build } from "vite"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import { exportPictures } from "./check/pictures.mjs"
import { check } from "./check/scenarios.mjs"
import { serve } from "./check/server.mjs"

const { values } = commandLine({
  options: {
    port: { type: "string", default: "4174" },
    check: { type: "boolean", default: false },
    short: { type: "boolean", default: false },
    build: { type: "boolean", default: false },
    pictures: { type: "boolean", default: false }
  }
}, { whole: ["port"] })

await build({ configFile: fileURLToPath(new URL("./vite.config.ts", import.meta.url)), logLevel: "warn" })
if (values.check) {
  process.exitCode = await check({ isShort: values.short }) === 0 ? 0 : 1
} else if (values.pictures) {
  await exportPictures()
} else if (!values.build) {
  const { url } = await serve(Number(values.port))
  console.log(`the playground is at ${url}`)
}
