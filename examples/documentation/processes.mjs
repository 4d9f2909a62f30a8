// Runs each block that starts a program itself (a server, leader, consumer or script) in its own process.
import { spawn } from "node:child_process"
import { setTimeout } from "node:timers/promises"

/** Whether the program runs until it gets a signal. */
const isEndless = ({ code }) => /\brunMain\(|\brunFork\(|\bcreateSimba\(/.test(code)

/** Timeouts in milliseconds: for an endless program's first output, and for any other program's exit. */
const patience = { output: 8000, end: 60_000 }

export const isStarter = ({ code }) =>
  /\brunMain\(|\bEffect\.run(?:Promise|Fork|Sync)\(|\bcreateSimba\(|^const \w+ = await createFakeRedis\(/m.test(code)

/** Runs one program until it exits. An endless one gets SIGTERM after its first output. */
const runOne = async (path, env, endless) => {
  const child = spawn(process.execPath, ["--no-warnings", path], { env, stdio: ["ignore", "pipe", "pipe"] })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text))
  const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal })))
  const spoken = new Promise((resolve) => child.stdout.once("data", () => resolve(setTimeout(500))))
  const first = await Promise.race([
    ended,
    ...endless ? [spoken, setTimeout(patience.output)] : [setTimeout(patience.end)]
  ])
  if (first !== undefined) return { ...first, output }
  child.kill("SIGTERM")
  const last = await Promise.race([ended, setTimeout(20_000)])
  if (last === undefined) child.kill("SIGKILL")
  if (!endless) return { code: "none (still running after a minute)", output }
  return { ...last ?? { code: "none (still running after SIGTERM)" }, output }
}

const isFine = ({ code, output, signal }) =>
  (code === 0 || code === 130 || code === 143 || signal === "SIGTERM") &&
  !/\b(?:ERROR|FATAL)\b|^\w*Error: /m.test(output)

/**
 * Runs the blocks, two at a time. `write` writes a block to a file. `compare` compares the block's output with the
 * results shown in it.
 */
export const runAlone = async (blocks, env, write, compare, report) => {
  const waiting = [...blocks]
  const worker = async () => {
    for (let block = waiting.shift(); block !== undefined; block = waiting.shift()) {
      const result = await runOne(write(block), env, isEndless(block))
      if (!isFine(result)) report(block, `the process exited with ${result.code ?? result.signal}:\n${result.output}`)
      compare(block, result.output.split("\n").filter((line) => line !== ""))
    }
  }
  await Promise.all([worker(), worker()])
}
