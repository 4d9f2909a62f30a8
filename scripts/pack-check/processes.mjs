// Starts processes for the pack check. Those still running when the check exits are killed.
import { spawn } from "node:child_process"

const running = new Set()
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")))
for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]]) {
  process.on(signal, () => process.exit(code))
}

/** Starts a process. `ended` resolves to its exit code and everything that it printed, and never rejects. */
export const start = (command, args, options = {}) => {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options })
  running.add(child)
  let text = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk) => (text += chunk))
  }
  const ended = new Promise((resolve) => {
    const end = (code) => {
      running.delete(child)
      resolve({ code, failed: code !== 0, text: text.trim() })
    }
    child.on("error", (error) => {
      text += error.message
      end(null)
    })
    child.on("close", end)
  })
  return { child, ended }
}

/** Runs a command to completion. */
export const run = (command, args, options) => start(command, args, options).ended
