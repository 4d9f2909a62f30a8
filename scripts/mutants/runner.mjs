// A Vitest runner that runs each test again with every mutant that the test reaches, until some test fails.
import { appendFileSync, closeSync, openSync, readSync, statSync } from "node:fs"
import { TestRunner } from "vitest"
import { mutation, work } from "./state.mjs"

const silently = async (run) => {
  const { ...methods } = console
  for (const name of ["log", "error", "warn", "info", "debug"]) console[name] = () => {}
  try {
    return await run()
  } finally {
    Object.assign(console, methods)
  }
}

const cpuMillis = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

/** Fails when the test computes for longer than the limit, or waits although nothing is under way any more. */
const neverEnds = (limit) => {
  const end = cpuMillis() + limit
  let timer
  const ended = new Promise((_, reject) => {
    mutation.fail = () => reject(new Error("loops"))
    let [idle, before] = [0, performance.eventLoopUtilization()]
    timer = setInterval(() => {
      const now = performance.eventLoopUtilization()
      idle = performance.eventLoopUtilization(now, before).utilization < 0.2 ? idle + 1 : 0
      before = now
      if (idle === 10 || cpuMillis() > end) reject(new Error("does not end"))
    }, 100)
  })
  ended.catch(() => {})
  return { ended, stop: () => clearInterval(timer) }
}

const killed = new Set()
const tried = new Set()
let readTo = 0

/** What all processes have found since the last call. */
const readFound = () => {
  const { size } = statSync(work.found)
  if (size === readTo) return
  const file = openSync(work.found)
  const bytes = Buffer.alloc(size - readTo)
  readSync(file, bytes, 0, bytes.length, readTo)
  closeSync(file)
  const end = bytes.lastIndexOf(10) + 1
  readTo += end
  for (const line of bytes.subarray(0, end).toString().split("\n")) {
    if (line === "") continue
    const { id, test, how } = JSON.parse(line)
    if (how === "killed" || how === "timeout") killed.add(id)
    else tried.add(`${id} ${test}`)
  }
}

const note = (id, test, how) => appendFileSync(work.found, `${JSON.stringify({ id, test, how })}\n`)

const byPlace = Map.groupBy(work.mutants, ({ place }) => place)

export default class MutantRunner extends TestRunner {
  async runTask(test) {
    const run = TestRunner.getTestFn(test)
    const name = `${test.file.name}: ${test.fullTestName ?? test.name}`
    const attempt = async (limit) => {
      const controller = new AbortController()
      test.context.signal = controller.signal
      const { ended, stop } = neverEnds(limit)
      const done = Promise.resolve(run())
      done.catch(() => {})
      try {
        await Promise.race([done, ended])
        return true
      } catch {
        controller.abort()
        await Promise.race([done.catch(() => {}), new Promise((resolve) => setTimeout(resolve, 50))])
        return false
      } finally {
        stop()
      }
    }
    const reached = mutation.reached = new Set()
    const startedAt = cpuMillis()
    try {
      await run()
    } finally {
      mutation.reached = undefined
    }
    readFound()
    const open = () =>
      [...reached].flatMap((place) => byPlace.get(place) ?? [])
        .filter(({ id }) => !killed.has(id) && !tried.has(`${id} ${name}`))
    const todo = open()
    if (todo.length === 0) return
    const millis = cpuMillis() - startedAt
    if (millis > work.longest) return
    const limit = Math.max(work.limit, millis * 10)
    await silently(async () => {
      if (!await attempt(limit)) return note(undefined, name, "unrepeatable")
      for (const mutant of todo) {
        readFound()
        if (killed.has(mutant.id)) continue
        note(mutant.id, name, "begun")
        mutation.active = mutant
        mutation.deadline = cpuMillis() + limit
        mutation.overdue = () => {
          note(mutant.id, name, "timeout")
          process.exit(99)
        }
        const survived = await attempt(limit)
        mutation.active = undefined
        mutation.deadline = Infinity
        if (survived) note(mutant.id, name, "survived")
        else if (await attempt(limit)) note(mutant.id, name, "killed")
        else {
          // The original fails now, too: what the mutant left behind disturbs it, so that this proves nothing
          note(mutant.id, name, "disturbed")
          break
        }
      }
    })
  }
}
