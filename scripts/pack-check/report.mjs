// What the check finds: problems, each with what was tried, and one line for each step that passed.
import { run } from "./processes.mjs"

export const problems = []

export const expect = (condition, problem) => {
  if (!condition) problems.push(problem)
}

/** Runs a command that has to succeed, and answers what it printed. */
export const must = async (what, command, args, options) => {
  const { failed, text } = await run(command, args, options)
  if (failed) problems.push(`${what}:\n${text}`)
  return text
}

/** Runs one step; `work` answers what there is to say about it. */
export const step = async (title, work) => {
  const before = problems.length
  const startedAt = performance.now()
  const said = await work()
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${problems.length > before ? "FAILED" : "ok"}  ${title}${said ? `: ${said}` : ""} (${seconds} s)`)
}
