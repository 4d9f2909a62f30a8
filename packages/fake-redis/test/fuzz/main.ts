/** Sends bad input to a fake server: `node main.ts --cases 100000 --seed 1`. */
import { commandLine } from "../../../../scripts/lib/commandLine.mjs"
import { fuzz } from "./fuzz.ts"

const { values } = commandLine({
  options: { cases: { type: "string", default: "10000" }, seed: { type: "string", default: "1" } }
}, { counts: ["cases"], whole: ["seed"] })
const started = performance.now()
const { replied, cases, closed } = await fuzz({ seed: Number(values.seed), cases: Number(values.cases) })
const seconds = ((performance.now() - started) / 1000).toFixed(1)
console.log(`${cases} cases in ${seconds} s: ${replied} bytes of replies, ${closed} connections ended by the server`)
