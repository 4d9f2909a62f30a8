// Starts a redis-server for the check, on a free loopback port.
import { createConnection, createServer } from "node:net"
import { setTimeout } from "node:timers/promises"
import { start } from "./processes.mjs"

const freePort = () =>
  new Promise((resolve, reject) => {
    const probe = createServer().on("error", reject)
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

/** Whether the server with this pid is the one that listens on the port. */
const replies = (port, pid) =>
  new Promise((resolve) => {
    let text = ""
    const socket = createConnection(port, "127.0.0.1", () => socket.end("INFO server\r\n"))
    socket.on("data", (chunk) => (text += chunk))
    socket.on("error", () => resolve(false))
    socket.on("close", () => resolve(text.includes(`process_id:${pid}\r\n`)))
  })

/** Runs `work` with the URL of a fresh server, which is stopped afterwards. */
export const withRedis = async (work) => {
  const port = await freePort()
  const args = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
  const { child, ended } = start("redis-server", args)
  let over = false
  ended.then(() => (over = true))
  try {
    while (!over && !(await replies(port, child.pid))) await setTimeout(20)
    if (over) throw new Error(`redis-server did not start:\n${(await ended).text}`)
    return await work(`redis://127.0.0.1:${port}`)
  } finally {
    child.kill()
    await ended
  }
}
