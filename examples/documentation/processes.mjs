// Runs the blocks that start themselves: servers, leaders, consumers, scripts. Each in a process of its own.
import { spawn } from "node:child_process"
import { setTimeout } from "node:timers/promises"

/** Programs that run until a signal. */
const isEndless = ({ code }) => /\brunMain\(|\brunFork\(|\bcreateSimba\(/.test(code)

/** Milliseconds for the first output of a program without end, and for the end of another. */
const patience = { output: 8000, end: 60_000 }

export const isStarter = ({ code }) =>
  /\brunMain\(|\bEffect\.run(?:Promise|Fork|Sync)\(|\bcreateSimba\(|^const \w+ = await createFakeRedis\(/m.test(code)

/** Runs to its end, or is asked to end once it has logged something. */
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

/** `write` gives a block a file, `compare` holds its output against what it shows. */
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
