// Runs this worker's mutants in one process. For each mutant, it runs the tests that reach the mutated place until one
// fails: first those that killed another mutant in the file, then the cheapest.
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Worker } from "node:worker_threads"
import { cpuMillis, mutation, tests, work } from "./state.mjs"

const [worker, workers] = process.env.MUTANTS_WORKER.split("/").map(Number)

const foundPath = join(work.out, "found.jsonl")
const coveragePath = join(work.out, "coverage.jsonl")

const append = (path, line) => appendFileSync(path, `${JSON.stringify(line)}\n`)

const readLines = (path) =>
  existsSync(path)
    ? readFileSync(path, "utf8").split("\n").flatMap((line) => line.endsWith("}") ? [JSON.parse(line)] : [])
    : []

const silence = () => {
  for (const name of ["log", "error", "warn", "info", "debug"]) console[name] = () => {}
}

/** Kills this process if a mutant exceeds its CPU limit in a loop that blocks all timers. */
const watchdog = () => {
  const shared = new SharedArrayBuffer(16)
  const thread = new Worker(new URL("./watchdog.mjs", import.meta.url), { workerData: { shared, path: foundPath } })
  thread.unref()
  const [deadline, id] = [new Float64Array(shared, 0, 1), new Int32Array(shared, 8, 1)]
  return {
    watch: (mutant, millis) => {
      id[0] = mutant
      deadline[0] = cpuMillis() + millis
    },
    rest: () => deadline[0] = 0
  }
}

/** Rejects if the test exceeds the CPU limit, or if the event loop is idle for 400 ms: no test waits for real time. */
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
      if (idle === 8 || cpuMillis() > end) reject(new Error("does not end"))
    }, 50)
  })
  ended.catch(() => {})
  return { ended, stop: () => clearInterval(timer) }
}

const attempt = async ({ run }, limit) => {
  const controller = new AbortController()
  const { ended, stop } = neverEnds(limit)
  const done = Promise.resolve().then(() => run(controller.signal))
  done.catch(() => {})
  try {
    await Promise.race([done, ended])
    return true
  } catch {
    controller.abort()
    await Promise.race([done.catch(() => {}), sleep(50)])
    return false
  } finally {
    stop()
  }
}

/**
 * The places that each test reaches, and its cost. Measures this worker's share of the unknown ones, and waits for the
 * other workers.
 */
const coverage = async () => {
  const known = () => new Map(readLines(coveragePath).map((line) => [line.test, line]))
  const before = known()
  // Count all tests, sorted by name: a worker that starts later knows some already, and may load them in a different
  // order
  for (const [index, test] of tests.toSorted((a, b) => a.name < b.name ? -1 : 1).entries()) {
    if (index % workers !== worker || before.has(test.name)) continue
    if (test.isLong && work.longest < 60_000) {
      append(coveragePath, { test: test.name, millis: 60_000, places: [] })
      continue
    }
    const reached = mutation.reached = new Set()
    const startedAt = cpuMillis()
    const passed = await attempt(test, Math.max(2000, work.longest * 2))
    mutation.reached = undefined
    const millis = Math.round(cpuMillis() - startedAt)
    // A test that was stopped reports a cost beyond the limit, so it is never used. On an overloaded machine, tests that
    // pass may be stopped
    if (!passed && millis <= work.longest) append(foundPath, { how: "unrepeatable", test: test.name })
    append(coveragePath, { test: test.name, millis, places: passed ? [...reached] : [] })
  }
  for (;;) {
    const now = known()
    if (tests.every(({ name }) => now.has(name))) return now
    await sleep(300)
  }
}

export const campaign = async () => {
  silence()
  const covered = await coverage()
  append(foundPath, { how: "began", worker })
  const testsOf = new Map()
  for (const test of tests) {
    const { millis, places } = covered.get(test.name)
    if (millis > work.longest) continue
    for (const place of places) {
      if (!testsOf.has(place)) testsOf.set(place, [])
      testsOf.get(place).push({ ...test, millis })
    }
  }
  for (const of of testsOf.values()) of.sort((a, b) => a.millis - b.millis)
  const lines = readLines(foundPath)
  const decided = new Set(lines.flatMap(({ how, id }) => how === "killed" || how === "undecided" ? [id] : []))
  const tried = new Set(lines.flatMap(({ how, id, test }) => how === "survived" ? [`${id} ${test}`] : []))
  const places = [...Map.groupBy(work.open, (id) => work.mutants[id].place)]
  const { rest, watch } = watchdog()
  const limitOf = ({ millis }) => Math.max(work.limit, millis * 10)
  const unrepeatable = new Set()
  const repeatable = new Set()
  /** For each file, the tests that most recently killed one of its mutants. */
  const killers = new Map()
  const inOrder = (of, file) => {
    const last = killers.get(file) ?? []
    const first = last.flatMap((name) => of.filter((test) => test.name === name))
    return [...first, ...of.filter((test) => !first.includes(test))]
  }
  const kills = async (mutant, test) => {
    if (!repeatable.has(test.name)) {
      if (!await attempt(test, limitOf(test))) {
        unrepeatable.add(test.name)
        append(foundPath, { how: "unrepeatable", test: test.name })
        return false
      }
      repeatable.add(test.name)
    }
    append(foundPath, { how: "begun", id: mutant.id, test: test.name })
    mutation.activate(mutant, limitOf(test))
    watch(mutant.id, limitOf(test) * 2)
    const survived = await attempt(test, limitOf(test))
    mutation.activate(undefined)
    rest()
    if (survived) return false
    if (await attempt(test, limitOf(test))) return true
    // The original now fails, too: the mutant has left side effects behind, and its failure proves nothing
    append(foundPath, { how: "disturbed", id: mutant.id, test: test.name })
    process.kill(process.pid, "SIGKILL")
  }
  for (const [index, [place, ids]] of places.entries()) {
    if (index % workers !== worker) continue
    const of = testsOf.get(place) ?? []
    for (const id of ids) {
      if (decided.has(id)) continue
      const mutant = work.mutants[id]
      let killer
      let spent = 0
      const survived = []
      for (const test of inOrder(of, mutant.file)) {
        spent += test.millis
        if (spent > work.budget && survived.length > 0) break
        if (unrepeatable.has(test.name) || tried.has(`${id} ${test.name}`)) continue
        if (await kills(mutant, test)) {
          killer = test.name
          break
        }
        survived.push(test.name)
      }
      if (killer === undefined) append(foundPath, { how: "undecided", id, survived, covering: of.length })
      else {
        append(foundPath, { how: "killed", id, test: killer })
        const last = killers.get(mutant.file) ?? []
        killers.set(mutant.file, [killer, ...last.filter((name) => name !== killer)].slice(0, 12))
      }
    }
  }
  append(foundPath, { how: "finished", worker })
}
