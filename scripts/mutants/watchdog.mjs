// A worker thread that kills the process when the main thread is stuck in a loop. The campaign sets the deadline.
import { appendFileSync } from "node:fs"
import { workerData } from "node:worker_threads"

const { path, shared } = workerData
const [deadline, id] = [new Float64Array(shared, 0, 1), new Int32Array(shared, 8, 1)]

setInterval(() => {
  const { system, user } = process.cpuUsage()
  if (deadline[0] === 0 || (system + user) / 1000 < deadline[0]) return
  appendFileSync(path, `${JSON.stringify({ how: "stuck", id: id[0] })}\n`)
  process.kill(process.pid, "SIGKILL")
}, 200)
