// Runs the blocks that run themselves (servers, leaders, consumers, scripts), each in its own process.
import { spawn } from "node:child_process"
import { setTimeout } from "node:timers/promises"

/** Programs that run until a signal. */
const isEndless = ({ code }) => /\brunMain\(|\brunFork\(|\bcreateSimba\(/.test(code)

/** Milliseconds until the first output of a program that does not end, and until the end of one that does. */
const patience = { output: 8000, end: 60_000 }

export const isStarter = ({ code }) =>
  /\brunMain\(|\bEffect\.run(?:Promise|Fork|Sync)\(|\bcreateSimba\(|^const \w+ = await createFakeRedis\(/m.test(code)

/** Runs until it ends, or sends SIGTERM once it has logged something. */
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
  return { ...last ?? { code: "none: SIGTERM does not end it" }, output }
}

const isFine = ({ code, output, signal }) =>
  (code === 0 || code === 130 || code === 143 || signal === "SIGTERM") &&
  !/\b(?:ERROR|FATAL)\b|^\w*Error: /m.test(output)

/** `write` writes a block to a file, `compare` compares its output with the results that the block promises. */
export const runAlone = async (blocks, env, write, compare, report) => {
  const waiting = [...blocks]
  const worker = async () => {
    for (let block = waiting.shift(); block !== undefined; block = waiting.shift()) {
      const result = await runOne(write(block), env, isEndless(block))
      if (!isFine(result)) report(block, `as a process it ends with ${result.code ?? result.signal}:\n${result.output}`)
      compare(block, result.output.split("\n").filter((line) => line !== ""))
    }
  }
  await Promise.all([worker(), worker()])
}
