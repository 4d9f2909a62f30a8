/**
 * Compares the engine with a redis-server on random commands.
 *
 *     node main.ts --cases 100000 --seed 7 [--port P] [--context 4] [--socket]
 *
 * Starts a separate redis-server unless a port is given. With `--socket`, compares the fake's socket server instead of
 * the engine, and also compares the invalidations that both servers' tracking clients receive.
 */
import { commandLine } from "../../../../scripts/lib/commandLine.mjs"
import { loadLua } from "../../src/internal/lua/vm.ts"
import { overSocket } from "./overSocket.ts"
import { startServer, versionOf } from "./realServer.ts"
import { open } from "./resp.ts"
import { describe, engineFake, run } from "./runner.ts"

const { values } = commandLine({
  options: {
    cases: { type: "string", default: "10000" },
    seed: { type: "string", default: "1" },
    port: { type: "string" },
    context: { type: "string", default: "4" },
    socket: { type: "boolean", default: false }
  }
}, { counts: ["cases"], whole: ["seed", "port", "context"] })

const server = values.port === undefined || values.socket ? await startServer() : undefined
try {
  const connection = await open(server === undefined ? Number(values.port) : server.path)
  const version = await versionOf(connection)
  const lua = await loadLua()
  const started = performance.now()
  const seed = Number(values.seed)
  const cases = Number(values.cases)
  const { accepted, comparisons, differences } = values.socket
    ? await overSocket(connection, server!.path, seed, cases)
    : await run(connection, engineFake(lua, seed), seed, cases)
  const seconds = (performance.now() - started) / 1000
  connection.close()
  for (const difference of differences) console.log(describe(difference, Number(values.context)))
  for (const [name, count] of accepted) console.log(`accepted ${count} differences in ${name}`)
  console.log(`redis-server ${version}, ${Math.round(comparisons / seconds)} comparisons/s`)
  console.log(`${comparisons} comparisons, ${differences.length} unexplained differences`)
  process.exitCode = differences.length === 0 ? 0 : 1
} finally {
  await server?.stop()
}
