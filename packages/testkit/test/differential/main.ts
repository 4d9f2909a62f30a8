/**
 * `node main.ts --cases 100000 --seed 7 [--port P] [--context 4]`: compares the engine with a real redis-server, its
 * own unless a port is given.
 */
import { parseArgs } from "node:util"
import { loadLua } from "../../src/internal/redis/lua/vm.ts"
import { startServer, versionOf } from "./realServer.ts"
import { open } from "./resp.ts"
import { describe, run } from "./runner.ts"

const { values } = parseArgs({
  options: {
    cases: { type: "string", default: "10000" },
    seed: { type: "string", default: "1" },
    port: { type: "string" },
    context: { type: "string", default: "4" }
  }
})

const server = values.port === undefined ? await startServer() : undefined
try {
  const connection = await open(server === undefined ? Number(values.port) : server.path)
  const version = await versionOf(connection)
  const lua = await loadLua()
  const started = performance.now()
  const { accepted, comparisons, differences } = await run(connection, lua, Number(values.seed), Number(values.cases))
  const seconds = (performance.now() - started) / 1000
  connection.close()
  for (const difference of differences) console.log(describe(difference, Number(values.context)))
  for (const [name, count] of accepted) console.log(`accepted ${count} times: ${name}`)
  console.log(`redis-server ${version}, ${Math.round(comparisons / seconds)} comparisons/s`)
  console.log(`${comparisons} comparisons, ${differences.length} unexplained differences`)
  process.exitCode = differences.length === 0 ? 0 : 1
} finally {
  await server?.stop()
}
