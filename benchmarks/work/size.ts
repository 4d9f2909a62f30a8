/** What the mutex adds to an application: time to import it, and bytes in a bundle. */
import { Effect, Schema } from "effect"
import { execFile } from "node:child_process"
import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { median, rounded, spread } from "../lib/statistics.ts"
import { load } from "../peers/folder.ts"
import { installed } from "../peers/install.ts"
import { esbuild } from "../peers/tools.ts"

/** Bytes, minified, without effect and ioredis. */
export interface Bundle {
  readonly minified: number
  readonly gzip: number
  readonly brotli: number
}

export interface Sizes {
  /** Milliseconds to import what a program with mutexes on Redis imports, once effect and ioredis are loaded. */
  readonly importMillis: number
  readonly importSpread: readonly [number, number]
  /** The same for the barrels of both packages. */
  readonly barrelsMillis: number
  /** What a program that only locks has in its bundle. */
  readonly mutexOnly: Bundle
  /** The indexes of both packages, with and without those of streams. */
  readonly everything: Bundle
  readonly withoutStreams: Bundle
  /** What the indexes leave out: the door for programs without Effect, and the fence for SQL, each with all it needs. */
  readonly promise: Bundle
  readonly sqlFence: Bundle
}

const root = fileURLToPath(new URL("../../", import.meta.url))
const folder = fileURLToPath(new URL("../.packed/", import.meta.url))
const packages = ["core", "redis"]
const repetitions = 15

const run = (file: string, args: ReadonlyArray<string>, cwd: string) =>
  new Promise<{ readonly stdout: string; readonly failed: boolean }>((resolve) => {
    execFile(file, args, { cwd, maxBuffer: 1 << 26 }, (error, stdout) => resolve({ stdout, failed: error !== null }))
  })

interface Manifest {
  readonly name: string
  readonly version: string
  readonly sideEffects: unknown
  readonly publishConfig: { readonly exports: unknown }
}

/** Built as for publishing, apart from the working tree's own outputs, and found as an installed package is. */
const pack = async () => {
  const target = join(folder, "node_modules/@effect-simba")
  await rm(target, { recursive: true, force: true })
  const script = join(root, "scripts/bundle.mjs")
  const { failed } = await run(process.execPath, [script, target], root)
  if (failed) throw new Error(`cannot build the packages: node ${script} says why`)
  for (const name of packages) {
    const { name: full, publishConfig: { exports }, sideEffects, version } = JSON.parse(
      await readFile(join(root, "packages", name, "package.json"), "utf8")
    ) as Manifest
    await writeFile(
      join(target, name, "package.json"),
      JSON.stringify({ name: full, version, type: "module", sideEffects, exports })
    )
  }
}

const link = async (name: string) => {
  const path = new URL(import.meta.resolve(name)).pathname
  const marker = `/node_modules/${name}/`
  const target = join(folder, "node_modules", name)
  await mkdir(dirname(target), { recursive: true })
  await rm(target, { force: true })
  await symlink(path.slice(0, path.lastIndexOf(marker) + marker.length - 1), target)
}

const whatAnAppHas = `await import("effect"); await import("effect/persistence/Redis"); await import("ioredis");`
const modules = ["@effect-simba/core/Mutex", "@effect-simba/redis/RedisMutex"]
const barrels = ["@effect-simba/core", "@effect-simba/redis"]

/** In a process of its own each time; where it fails there is no time. */
const importTime = async (names: ReadonlyArray<string>) => {
  const file = join(folder, "import.mjs")
  const imports = names.map((name) => `await import("${name}");`).join(" ")
  await writeFile(
    file,
    `${whatAnAppHas}\nconst before = performance.now()\n${imports}\nconsole.log(performance.now() - before)\n`
  )
  const { failed, stdout } = await run(process.execPath, ["--no-warnings", file], folder)
  if (failed) throw new Error(`cannot import ${names.join(", ")}: node ${file} says why`)
  return Number(stdout)
}

interface Esbuild {
  readonly build: (options: Record<string, unknown>) => Promise<{
    readonly outputFiles: ReadonlyArray<{ readonly contents: Uint8Array }>
  }>
}

const bundle = async (contents: string): Promise<Bundle> => {
  const { build } = await load<Esbuild>(esbuild.name, "esbuild")
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: folder, loader: "js" },
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    platform: "node",
    external: ["effect", "effect/*", "ioredis"]
  })
  const code = outputFiles[0]!.contents
  const brotli = brotliCompressSync(code, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })
  return { minified: code.length, gzip: gzipSync(code, { level: 9 }).length, brotli: brotli.length }
}

const exporting = (names: ReadonlyArray<string>) =>
  names.map((name, at) => `export * as module${at} from "${name}"`).join("\n")

const measure = async (): Promise<Sizes> => {
  await pack()
  await link("effect")
  await link("ioredis")
  const times: Array<number> = []
  const barrelTimes: Array<number> = []
  for (let i = 0; i < repetitions; i++) {
    times.push(await importTime(modules))
    barrelTimes.push(await importTime(barrels))
  }
  const [least, most] = spread(times)
  const mutexOnly = `export { acquire, withLock } from "@effect-simba/core/Mutex"\n` +
    `export { layer } from "@effect-simba/redis/RedisMutex"`
  return {
    importMillis: rounded(median(times)),
    importSpread: [rounded(least), rounded(most)],
    barrelsMillis: rounded(median(barrelTimes)),
    mutexOnly: await bundle(mutexOnly),
    everything: await bundle(exporting([...barrels, ...barrels.map((name) => `${name}/streams`)])),
    withoutStreams: await bundle(exporting(barrels)),
    promise: await bundle(exporting(["@effect-simba/redis/promise"])),
    sqlFence: await bundle(exporting(["@effect-simba/core/SqlFence"]))
  }
}

export class SizeError extends Schema.TaggedError<SizeError>()("SizeError", { message: Schema.String }) {}

export const sizes: Effect.Effect<Sizes, SizeError> = Effect.gen(function*() {
  const failure = yield* installed(esbuild)
  if (failure !== undefined) return yield* new SizeError({ message: failure })
  return yield* Effect.tryPromise({ try: measure, catch: (cause) => new SizeError({ message: String(cause) }) })
})
