// Collects the check's results: which steps passed, and the problems of those that failed.
import { AsyncLocalStorage } from "node:async_hooks"
import { run } from "./processes.mjs"

/** The problems of the current step. Steps run concurrently, so it is kept per asynchronous context. */
const own = new AsyncLocalStorage()
let failedSteps = 0

export const problem = (text) => {
  own.getStore().push(text)
}

/** Whether no step has failed so far. */
export const allWell = () => failedSteps === 0

/** Runs a command that must succeed, and returns its output. */
export const must = async (what, command, args, options) => {
  const { failed, text } = await run(command, args, options)
  if (failed) problem(`${what}:\n${text}`)
  return text
}

/** Runs one step and reports whether it passed. `work` returns a summary for the report. */
export const step = async (title, work) => {
  const problems = []
  const startedAt = performance.now()
  const said = await own.run(problems, work)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${problems.length > 0 ? "FAILED" : "ok"}  ${title}${said ? `: ${said}` : ""} (${seconds} s)`)
  if (problems.length === 0) return
  failedSteps += 1
  process.exitCode = 1
  console.error(`\n${problems.join("\n\n")}\n`)
}
