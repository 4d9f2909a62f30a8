// Measures the cost of a type check by the compiler's own counts because, unlike times, they are the same on every
// machine.
import { writeFileSync } from "node:fs"
import { join } from "node:path"

/** A program that only locks, and a baseline that imports effect and ioredis but not this library. */
export const lockingPrograms = {
  locks: `import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { Effect } from "effect"

export const program = Effect.log("only one of us").pipe(
  Mutex.withLock("report", { timeout: "5 seconds" }),
  Effect.provide(RedisMutex.layer({ redis: { url: "redis://localhost:6379" } }))
)
`,
  without: `import { Effect } from "effect"
import { Redis } from "ioredis"

export const program = Effect.sync(() => new Redis("redis://localhost:6379"))
`
}

/** Writes one of these programs and its tsconfig, and returns the compiler's arguments. */
export const writeLockingProgram = (folder, name) => {
  writeFileSync(join(folder, `types-${name}.ts`), lockingPrograms[name])
  const config = join(folder, `tsconfig.types-${name}.json`)
  writeFileSync(
    config,
    JSON.stringify({
      compilerOptions: {
        target: "es2022",
        module: "nodenext",
        strict: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: true,
        noEmit: true,
        types: ["node"]
      },
      files: [`types-${name}.ts`]
    })
  )
  return ["-p", config, "--extendedDiagnostics", "--singleThreaded"]
}

/** Reads the counts from the compiler's output. */
export const countsOf = (text) => {
  const count = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1])
  return {
    files: count("Files"),
    lines: count("Lines"),
    types: count("Types"),
    instantiations: count("Instantiations")
  }
}
