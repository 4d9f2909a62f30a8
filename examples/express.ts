/**
 * Express without Effect. A request gets a 409 while another request, in any process, is making the same report. One
 * process in the fleet cleans up every second. A health endpoint shows whether this process leads.
 *
 *     node examples/express.ts
 *     REDIS_URL=redis://localhost:6379 PORT=3001 node examples/express.ts
 *     curl -i -X POST http://localhost:3000/reports/2026-11
 */
import { createSimba } from "@effect-simba/redis/promise"
import express from "express"
import { setTimeout } from "node:timers/promises"
import { redisUrlPromise } from "./shared/redisUrl.ts"

const simba = await createSimba({ url: await redisUrlPromise() })

const nightly = await simba.lead("nightly", { cron: "* * * * * *" }, async (lease) => {
  console.log(`the leader cleans up, with token ${lease.token}`)
})

const app = express()

app.post("/reports/:month", async (request, response) => {
  const { month } = request.params
  const made = await simba.withLockIfAvailable(`report:${month}`, async (lease, signal) => {
    await setTimeout(1000, undefined, { signal })
    return { month, token: lease.token }
  })
  if (made.acquired) response.json(made.value)
  else response.status(409).send("somebody else is making this report")
})

app.get("/health", (_, response) => {
  response.json({ role: nightly.isLeader ? "leader" : "standby" })
})

const server = app.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", () => {
  const address = server.address()
  console.log(`Listening on http://127.0.0.1:${typeof address === "object" ? address?.port : address}`)
})

// Let requests finish, then release the locks: other processes can acquire them immediately
const shutDown = () => server.close(() => void simba.close().then(() => process.exit()))
process.once("SIGINT", shutDown).once("SIGTERM", shutDown)
