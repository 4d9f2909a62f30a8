/**
 * `node main.ts --cases 100000 --seed 7 [--port P] [--context 4]`: compares the engine with a real redis-server, its own unless a port
 * is given.
 */
import { spawn } from "node:child_process"
import { createServer } from "node:net"
import { parseArgs } from "node:util"
import { loadLua } from "../../src/internal/engine/lua.ts"
import type { Connection } from "./resp.ts"
import { open } from "./resp.ts"
import { run } from "./runner.ts"

const { values } = parseArgs({
  options: {
    cases: { type: "string", default: "10000" },
    seed: { type: "string", default: "1" },
    port: { type: "string" },
    context: { type: "string", default: "4" }
  }
})

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer()
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

const patiently = async (port: number): Promise<Connection> => {
  for (let attempt = 0;; attempt++) {
    try {
      return await open(port)
    } catch (error) {
      if (attempt > 100) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

const port = values.port === undefined ? await freePort() : Number(values.port)
const child = values.port === undefined
  ? spawn("redis-server", ["--port", String(port), "--save", "", "--appendonly", "no"], { stdio: "ignore" })
  : undefined
try {
  const connection = await patiently(port)
  const started = performance.now()
  const { accepted, comparisons, differences } = await run(
    connection,
    await loadLua(),
    Number(values.seed),
    Number(values.cases)
  )
  connection.close()
  for (const { args, context, fake, real, seed, step } of differences) {
    console.log(`seed ${seed}, step ${step}: ${args.map((arg) => JSON.stringify(arg)).join(" ")}`)
    console.log(`  real ${real}\n  fake ${fake}`)
    for (const line of context.slice(-Number(values.context))) console.log(`    ${line}`)
  }
  for (const [name, count] of accepted) console.log(`accepted ${count} times: ${name}`)
  console.log(`${Math.round(comparisons / (performance.now() - started) * 1000)} comparisons/s`)
  console.log(`${comparisons} comparisons, ${differences.length} unexplained differences`)
  process.exitCode = differences.length === 0 ? 0 : 1
} finally {
  child?.kill()
}
