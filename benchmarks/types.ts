/**
 * Measures how long the compiler takes for a program that only locks, and for a program that imports effect and ioredis
 * but not this library.
 *
 *     pnpm bench:types
 */
import { execFile } from "node:child_process"
import { cp } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import { countsOf, writeLockingProgram } from "../scripts/lib/typeCounts.mjs"
import { median, rounded } from "./lib/statistics.ts"
import { folder, pack } from "./work/packed.ts"

commandLine({ options: {} })
const root = fileURLToPath(new URL("../", import.meta.url))
const compiler = join(root, "node_modules/typescript/bin/tsc")
const repetitions = 7

const run = (file: string, args: ReadonlyArray<string>, cwd: string) =>
  new Promise<string>((resolve, reject) => {
    execFile(file, args, { cwd }, (error, stdout) => error === null ? resolve(stdout) : reject(new Error(stdout)))
  })

/**
 * Parses the output of `times`: the CPU time of the shell, then of its children, in minutes and seconds, user and
 * system.
 */
const secondsOf = (times: string) =>
  [...times.matchAll(/(\d+)m([\d.]+)s/g)].slice(-2).reduce(
    (sum, [, minutes, seconds]) => sum + 60 * Number(minutes) + Number(seconds),
    0
  )

const measure = async (name: "locks" | "without") => {
  const args = writeLockingProgram(folder, name)
  const text = await run(process.execPath, [compiler, ...args], folder)
  const shell = `${[process.execPath, compiler, ...args].map((arg) => `'${arg}'`).join(" ")} > /dev/null; times`
  const [elapsed, cpu]: [Array<number>, Array<number>] = [[], []]
  for (let i = 0; i < repetitions; i++) {
    const before = performance.now()
    cpu.push(secondsOf(await run("/bin/sh", ["-c", shell], folder)))
    elapsed.push((performance.now() - before) / 1000)
  }
  return { ...countsOf(text), cpuSeconds: rounded(median(cpu)), elapsedSeconds: rounded(median(elapsed)) }
}

await run(process.execPath, [compiler, "-b", "tsconfig.packages.json"], root)
await pack()
for (const name of ["core", "redis"]) {
  const target = join(folder, "node_modules/@effect-simba", name, "dist")
  await cp(join(root, "packages", name, "dist"), target, {
    recursive: true,
    filter: (path) => !/\.(?:js|map)$/.test(path)
  })
}
console.log({ locks: await measure("locks"), without: await measure("without") })
