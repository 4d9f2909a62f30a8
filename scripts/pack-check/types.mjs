// Compiles strict consumers of the packed packages, as ES modules and as CommonJS.
import { cpSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { countsOf, writeLockingProgram } from "../lib/typeCounts.mjs"
import { root } from "../lib/workspace.mjs"
import { binOf } from "./consumer.mjs"
import { typesOfImports } from "./imports.mjs"
import { run } from "./processes.mjs"
import { problem } from "./report.mjs"

const strict = {
  target: "ES2022",
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: false,
  types: ["node"],
  rootDir: "."
}

const modules = ["program.ts", "imports.ts"]
const all = [...modules, "commonjs.cts", "dynamic.cts"]

/** The settings of each consumer. `refused` is the error code that each import must cause. */
const cases = [
  // Also checks the declarations of all libraries
  { name: "nodenext", module: "nodenext", files: all, skipLibCheck: false, outDir: "out" },
  { name: "node20", module: "node20", files: all },
  { name: "node16", module: "node16", files: [...modules, "dynamic.cts"] },
  { name: "bundler", module: "preserve", moduleResolution: "bundler", files: all },
  // With these settings, TypeScript does not know that Node can require ES modules
  { name: "node16, CommonJS", module: "node16", files: ["commonjs.cts"], refused: "TS1479" }
]

const versionOf = (folder, compiler) =>
  JSON.parse(readFileSync(join(folder, "node_modules", compiler, "package.json"), "utf8")).version

const compile = async (folder, compiler, { files, name, refused, skipLibCheck = true, ...options }) => {
  const config = `tsconfig.${compiler}.${name.replaceAll(/\W+/g, "-")}.json`
  const compilerOptions = { ...strict, skipLibCheck, noEmit: options.outDir === undefined, ...options }
  writeFileSync(join(folder, config), JSON.stringify({ compilerOptions, files }))
  const args = [binOf(folder, compiler, "tsc"), "-p", config, "--pretty", "false"]
  const { failed, text } = await run(process.execPath, args, { cwd: folder })
  const errors = [...text.matchAll(/error (TS\d+)/g)].map(([, code]) => code)
  const asExpected = refused === undefined ? !failed : failed && errors.every((code) => code === refused)
  if (!asExpected) problem(`${compiler}, ${name}: compiling against the packages:\n${text}`)
}

/** Compiles all consumers with each of these compilers. Leaves runnable programs in `out`. */
export const checkTypes = async (folder, packed, compilers) => {
  for (const file of ["program.ts", "commonjs.cts", "dynamic.cts"]) {
    cpSync(join(root, "scripts/pack-check/consumer", file), join(folder, file))
  }
  writeFileSync(join(folder, "imports.ts"), typesOfImports(packed))
  for (const compiler of compilers) {
    for (const one of cases) await compile(folder, compiler, one)
  }
  return `${cases.map(({ name }) => name).join("; ")}; by TypeScript ${
    compilers.map((compiler) => versionOf(folder, compiler)).join(" and ")
  }`
}

/**
 * Limits on what this library adds to the type check of a program that only locks: the measured counts plus five
 * percent. `pnpm bench:types` shows the cost in seconds.
 */
const most = { files: 47, lines: 5650, types: 1720, instantiations: 3750 }

export const checkTypeCounts = async (folder) => {
  const count = async (name) => {
    const args = [binOf(folder, "typescript", "tsc"), ...writeLockingProgram(folder, name)]
    const { failed, text } = await run(process.execPath, args, { cwd: folder })
    if (failed) problem(`a program that locks does not compile:\n${text}`)
    return countsOf(text)
  }
  const [locks, without] = [await count("locks"), await count("without")]
  const said = Object.keys(most).map((name) => {
    const added = locks[name] - without[name]
    // NaN if the compiler no longer prints the count
    if (!(added <= most[name])) problem(`locks add ${added} ${name} to a type check; at most ${most[name]} are allowed`)
    return `${added} ${name}`
  })
  return `${said.join(", ")}`
}

/**
 * Checks that each mistake in an operation's options causes exactly one error, on its own line, whose message or
 * position names the mistake.
 */
export const checkWrongOptions = async (folder) => {
  const file = "wrong-options.ts"
  cpSync(join(root, "scripts/pack-check/consumer", file), join(folder, file))
  const config = "tsconfig.wrong-options.json"
  const compilerOptions = { ...strict, module: "nodenext", noEmit: true, skipLibCheck: true }
  writeFileSync(join(folder, config), JSON.stringify({ compilerOptions, files: [file] }))
  const args = [binOf(folder, "typescript", "tsc"), "-p", config, "--pretty", "false"]
  const { text } = await run(process.execPath, args, { cwd: folder })
  const mistakes = readFileSync(join(folder, file), "utf8").split("\n").flatMap((line, at) => {
    const named = / \/\/ (.+)$/.exec(line)?.[1]
    return named === undefined ? [] : [{ at: at + 1, named }]
  })
  const errors = text.split(/^(?=\S+\.ts\(\d+,\d+\): )/m).filter((error) => error.includes(": error TS"))
  for (const { at, named } of mistakes) {
    const found = errors.filter((error) => error.startsWith(`${file}(${at},`))
    // Some errors only point to the mistake, and their message has only types
    const line = readFileSync(join(folder, file), "utf8").split("\n")[at - 1]
    const pointsAt = found.some((error) => line.slice(Number(/,(\d+)\)/.exec(error)[1]) - 1).startsWith(named))
    if (found.length !== 1 || !(pointsAt || found[0].includes(named))) {
      problem(`${file}:${at} must have one error that names "${named}", and has:\n${found.join("\n") || "none"}`)
    }
  }
  if (errors.length !== mistakes.length) problem(`${errors.length} errors instead of ${mistakes.length}:\n${text}`)
  return `${mistakes.length} mistakes`
}
