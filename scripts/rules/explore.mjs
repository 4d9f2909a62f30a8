// Explores the scopes until a schedule fails, and prints the result as one line of JSON. Usage: node explore.mjs ROOT
// DEVIATIONS SCOPES
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const [, , root, deviations, names] = process.argv
const load = (path) => import(pathToFileURL(join(root, path)).href)
const { Effect } = await load("packages/redis/node_modules/effect/dist/index.js")
const { Simulation } = await load("packages/testkit/src/index.ts")
const { scopes } = await load("packages/redis/test/explore/scopes.ts")

Error.stackTraceLimit = 0
let schedules = 0
const explore = async (most) => {
  for (const name of names.split(",")) {
    const found = await Effect.runPromise(Simulation.explore(scopes[name].plan, { deviations: most }))
    schedules += found.schedules
    if (found.first !== undefined) return { scope: name, schedule: found.first.schedule }
  }
}
let first
for (let most = 0; most <= Number(deviations) && first === undefined; most++) first = await explore(most)
console.log(JSON.stringify({ schedules, ...first }))
