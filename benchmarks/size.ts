/**
 * Measures the time to import the mutex, the size of a bundle, and its size as one feature after the other is removed.
 *
 *     pnpm bench:size
 *     pnpm bench:size --save    saves the sizes with the last full run, and keeps its import times
 */
import { Effect } from "effect"
import { readFile, writeFile } from "node:fs/promises"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import { format } from "./lib/format.ts"
import { parse, textOf } from "./lib/results.ts"
import { sizes } from "./work/size.ts"

const { values: options } = commandLine({ options: { save: { type: "boolean", default: false } } })
const measured = await Effect.runPromise(sizes)
console.dir(measured, { depth: null })
if (options.save) {
  const file = new URL("./results/latest.json", import.meta.url)
  const latest = parse(await readFile(file, "utf8"))
  const { barrelsMillis, importMillis, importSpread } = latest.sizes ?? measured
  await writeFile(file, textOf({ ...latest, sizes: { ...measured, barrelsMillis, importMillis, importSpread } }))
  await format(file)
}
