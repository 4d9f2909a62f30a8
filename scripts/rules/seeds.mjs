// Runs seeds of a plan until one fails, and prints the result as one line of JSON. Usage: node seeds.mjs ROOT PLAN
// SEEDS [FIRST]
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const [, , root, plan, most, first = "1"] = process.argv
const load = (path) => import(pathToFileURL(join(root, path)).href)
const { Effect } = await load("packages/redis/node_modules/effect/dist/index.js")
const { Simulation } = await load("packages/testkit/src/index.ts")
const { plans } = await load("packages/redis/test/simulate/plans.ts")

Error.stackTraceLimit = 0
let [seeds, seed] = [0, undefined]
while (seeds < Number(most) && seed === undefined) {
  const next = Number(first) + seeds++
  const result = await Effect.runPromise(Simulation.run(plans[plan](next)))
  if (result.violations.length > 0) seed = next
}
console.log(JSON.stringify({ seeds, seed }))
