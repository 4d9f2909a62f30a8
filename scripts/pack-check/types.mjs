// Compiles a strict consumer of the packed packages, and runs the outcome on the Node of the system.
import { cpSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../lib/workspace.mjs"
import { binOf, system } from "./consumer.mjs"
import { typesOfImports } from "./imports.mjs"
import { run } from "./processes.mjs"
import { must, problems } from "./report.mjs"

const strict = {
  target: "ES2022",
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  skipLibCheck: true,
  types: ["node"],
  rootDir: ".",
  outDir: "out"
}

export const checkTypes = async (folder, packed) => {
  cpSync(join(root, "scripts/pack-check/consumer/program.ts"), join(folder, "program.ts"))
  writeFileSync(join(folder, "imports.ts"), typesOfImports(packed))
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions: { ...strict, module: "NodeNext" }, include: ["*.ts"] })
  )
  const compiled = await run(process.execPath, [binOf(folder, "typescript", "tsc"), "-p", "."], { cwd: folder })
  if (compiled.failed) problems.push(`compiling against the packages:\n${compiled.text}`)
  if (!compiled.failed) return must("the consumer's program", "node", ["out/program.js"], { cwd: folder, env: system })
}
