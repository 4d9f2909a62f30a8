import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../../../", import.meta.url))

interface Ended {
  readonly code: number
  readonly output: string
  readonly errors: string
}

const run = (command: string) =>
  new Promise<Ended>((resolve) => {
    const child = execFile(process.execPath, ["--no-warnings", ...command.split(" ")], { cwd: root }, (_, out, err) => {
      resolve({ code: child.exitCode!, output: out, errors: err })
    })
  })

const scripts = JSON.parse(readFileSync(`${root}package.json`, "utf8")).scripts as Record<string, string>

/** The programs behind commands such as `pnpm simulate` and `pnpm bench`. */
const programs = Object.values(scripts).flatMap((text) => {
  const file = /^node ((?:packages|benchmarks)\/\S+|scripts\/(?:mutants|rules).mjs)$/.exec(text)?.[1]
  return file === undefined ? [] : [file]
})

describe.concurrent("the repository's programs", () => {
  it.each(programs)("%s prints its header comment with --help", async (file) => {
    const help = await run(`${file} --help`)
    assert.deepStrictEqual([help.code, help.errors], [0, ""])
    const [first = ""] = help.output.split("\n")
    assert.match(first, /^[A-Z].{40}/)
    assert.include(readFileSync(`${root}${file}`, "utf8"), first)
  })

  it.each([
    ["scripts/mutants.mjs --nonsense", "Unknown option '--nonsense'; --help explains the options"],
    ["packages/redis/test/fuzz/main.ts --cases abc", "--cases must be a positive integer, not \"abc\""],
    ["packages/redis/test/fuzz/main.ts --cases 0", "--cases must be a positive integer, not \"0\""],
    ["packages/fake-redis/test/fuzz/main.ts --cases 0", "--cases must be a positive integer, not \"0\""],
    ["packages/fake-redis/test/differential/main.ts --cases 0", "--cases must be a positive integer, not \"0\""],
    ["packages/redis/test/simulate/main.ts --seeds 0", "--seeds must be a positive integer, not \"0\""],
    ["scripts/rules.mjs --seeds 0", "--seeds must be a positive integer, not \"0\""],
    ["scripts/mutants.mjs --sample 0", "--sample must be a positive integer, not \"0\""],
    ["scripts/mutants.mjs --area lua-mutex --file handOver.lua,nosuch.lua", "no mutated file is called \"nosuch.lua\""],
    ["benchmarks/main.ts --repetitions 0", "--repetitions must be a positive integer, not \"0\""],
    ["packages/redis/test/fuzz/main.ts --area text", "unknown area \"text\", expected one of: texts, options"],
    ["packages/fake-redis/test/fuzz/main.ts --cases 1.5", "--cases must be a positive integer, not \"1.5\""],
    ["packages/fake-redis/test/differential/main.ts --seed=", "--seed must be a non-negative integer, not \"\""],
    ["packages/redis/test/nemesis/main.ts --minutes soon", "--minutes must be a positive number, not \"soon\""],
    ["packages/redis/test/nemesis/main.ts --only stop,stopp", "unknown only \"stopp\", expected one of: "],
    ["packages/redis/test/simulate/main.ts --plan toString", "unknown plan \"toString\", expected one of: mutex"],
    ["packages/redis/test/simulate/main.ts -- --plan jobs", "Unexpected argument '--plan'"],
    ["packages/redis/test/explore/main.ts --scope two,toString", "unknown scope \"toString\", expected one of: "],
    ["packages/redis/test/explore/main.ts --scope two --schedule nothing", "the schedule asks for \"nothing\""],
    ["packages/redis/test/explore/main.ts --schedule nothing", "--schedule needs exactly one --scope"],
    ["packages/redis/test/nemesis/main.ts --judge nowhere", "nowhere does not contain a run's history"],
    ["scripts/mutants.mjs --area lua", "unknown area \"lua\", expected one of: lua-mutex"],
    ["scripts/rules.mjs --rule unheard-of", "no rule has \"unheard-of\" in its name"],
    ["benchmarks/main.ts --only handoff", "unknown only \"handoff\", expected one of: uncontended-1"],
    ["examples/documentation/main.mjs nosuch", "no file with blocks has \"nosuch\" in its path"],
    ["scripts/units.mjs nosuch", "there is no source under \"nosuch\""],
    ["scripts/words.mjs nosuch", "there is no text under \"nosuch\""]
  ])("%s does not do any work", async (command, message) => {
    const { code, errors, output } = await run(command)
    assert.deepStrictEqual([code, output, errors.slice(0, message.length)], [2, "", message])
  })
})
