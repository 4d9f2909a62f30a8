/**
 * Fastify without Effect. A request gets a 409 while another request, in any process, is making the same report. One
 * process in the fleet cleans up every second. A health endpoint shows whether this process leads.
 *
 *     node examples/fastify.ts
 *     REDIS_URL=redis://localhost:6379 PORT=3001 node examples/fastify.ts
 *     curl -i -X POST http://localhost:3000/reports/2026-11
 */
import { createSimba } from "@effect-simba/redis/promise"
import { fastify } from "fastify"
import { setTimeout } from "node:timers/promises"
import { redisUrlPromise } from "./shared/redisUrl.ts"

const app = fastify()
const simba = await createSimba({ url: await redisUrlPromise() })
// Runs after the last request and releases the locks: other processes can acquire them immediately
app.addHook("onClose", () => simba.close())

const nightly = await simba.lead("nightly", { cron: "* * * * * *" }, async (lease) => {
  console.log(`the leader cleans up, with token ${lease.token}`)
})

app.post<{ Params: { month: string } }>("/reports/:month", async (request, reply) => {
  const { month } = request.params
  const made = await simba.withLockIfAvailable(`report:${month}`, async (lease, signal) => {
    await setTimeout(1000, undefined, { signal })
    return { month, token: lease.token }
  })
  return made.acquired ? made.value : reply.code(409).send("somebody else is making this report")
})

app.get("/health", async () => ({ role: nightly.isLeader ? "leader" : "standby" }))

const address = await app.listen({ port: Number(process.env["PORT"] ?? 3000), host: "127.0.0.1" })
console.log(`Listening on ${address}`)

const shutDown = () => void app.close().then(() => process.exit())
process.once("SIGINT", shutDown).once("SIGTERM", shutDown)
