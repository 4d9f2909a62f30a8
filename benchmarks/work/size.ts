/** Measures what the mutex adds to an application: import time and bundle size. */
import { Effect, Schema } from "effect"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { piecesOf } from "../lib/sourceMap.ts"
import { median, rounded, spread } from "../lib/statistics.ts"
import { load } from "../peers/folder.ts"
import { installed } from "../peers/install.ts"
import { esbuild } from "../peers/tools.ts"
import { type Ablation, ablation } from "./ablation.ts"
import { folder, pack, run } from "./packed.ts"

/** Bytes of minified code, without effect and ioredis unless the field says so. */
export interface Bundle {
  readonly minified: number
  readonly gzip: number
  readonly brotli: number
}

/**
 * A part of a bundle: its bytes, and its size when compressed alone, which is slightly larger than within the bundle.
 */
export interface Part {
  readonly part: string
  readonly minified: number
  readonly brotli: number
}

export interface Sizes {
  readonly at?: string
  /** The time to import the modules for mutexes on Redis once effect and ioredis are loaded, in milliseconds. */
  readonly importMillis: number
  readonly importSpread: readonly [number, number]
  /** The time to import both packages' barrels once effect and ioredis are loaded, in milliseconds. */
  readonly barrelsMillis: number
  /** The bundle of a program that only locks. */
  readonly mutexOnly: Bundle
  /** The parts of `mutexOnly`. */
  readonly parts?: ReadonlyArray<Part>
  /** The program of `mutexOnly`, bundled with effect, and with effect and ioredis. */
  readonly withEffect?: Bundle
  readonly withIoredis?: Bundle
  /** A program that only locks, on another provider of Effect's `Redis` service, and in memory. */
  readonly otherProvider?: Bundle
  readonly inMemory?: Bundle
  /** Both packages' indexes, with and without the indexes for streams. */
  readonly everything: Bundle
  readonly withoutStreams: Bundle
  /**
   * Modules that the indexes do not export, each with everything that it needs: the API for programs without Effect,
   * and the fence for SQL.
   */
  readonly promise: Bundle
  readonly sqlFence: Bundle
  /** What would be left of `mutexOnly` and `withoutStreams`. */
  readonly ablation?: ReadonlyArray<Ablation<Bundle>>
}

const repetitions = 15

const whatAnAppHas = `await import("effect"); await import("effect/persistence/Redis"); await import("ioredis");`
const modules = ["@effect-simba/core/Mutex", "@effect-simba/redis/RedisMutex"]
const barrels = ["@effect-simba/core", "@effect-simba/redis"]

/** Measures an import in a new process. */
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
    readonly outputFiles: ReadonlyArray<{ readonly path: string; readonly contents: Uint8Array }>
  }>
}

const peers = ["effect", "effect/*", "ioredis"]

const build = async (contents: string, external: ReadonlyArray<string>) => {
  const { build } = await load<Esbuild>(esbuild.name, "esbuild")
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: folder, loader: "js" },
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    platform: "node",
    sourcemap: "external",
    outdir: folder,
    external
  })
  const contentsOf = (end: string) => Buffer.from(outputFiles.find(({ path }) => path.endsWith(end))!.contents)
  return { code: contentsOf(".js"), map: contentsOf(".map").toString() }
}

const brotliOf = (code: Buffer) => brotliCompressSync(code, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length

const bundle = async (contents: string, external = peers): Promise<Bundle> => {
  const { code } = await build(contents, external)
  return { minified: code.length, gzip: gzipSync(code, { level: 9 }).length, brotli: brotliOf(code) }
}

/** The parts, by source file. The first match applies. Code without a source is the text of the scripts. */
const partNames: ReadonlyArray<readonly [part: string, sources: RegExp]> = [
  ["Lua of the scripts", /^$|scripts\.generated/],
  ["the connection by ioredis", /redis\/src\/(?:IoRedis|internal\/client\/ioredis\/)/],
  ["the store on Redis", /redis\/src\//],
  ["acquiring, waiting and holding", /core\/src\/internal\/mutex\//],
  ["renewals and deadlines", /core\/src\/internal\/lease\//],
  ["errors, options, names, metrics", /./]
]

const parts = async (contents: string): Promise<ReadonlyArray<Part>> => {
  const { code, map } = await build(contents, peers)
  const texts = new Map(partNames.map(([part]) => [part, ""]))
  for (const { source, text } of piecesOf(code.toString(), map)) {
    const [part] = partNames.find(([, sources]) => sources.test(source))!
    texts.set(part, texts.get(part)! + text)
  }
  return [...texts].map(([part, text]) => ({ part, minified: text.length, brotli: brotliOf(Buffer.from(text)) }))
}

const exporting = (names: ReadonlyArray<string>) =>
  names.map((name, at) => `export * as module${at} from "${name}"`).join("\n")

const measure = async (): Promise<Sizes> => {
  await pack()
  const times: Array<number> = []
  const barrelTimes: Array<number> = []
  for (let i = 0; i < repetitions; i++) {
    times.push(await importTime(modules))
    barrelTimes.push(await importTime(barrels))
  }
  const [least, most] = spread(times)
  const operations = `export { acquire, withLock } from "@effect-simba/core/Mutex"\n`
  const mutexOnly = `${operations}export { layer } from "@effect-simba/redis/RedisMutex"`
  return {
    at: new Date().toISOString(),
    importMillis: rounded(median(times)),
    importSpread: [rounded(least), rounded(most)],
    barrelsMillis: rounded(median(barrelTimes)),
    mutexOnly: await bundle(mutexOnly),
    parts: await parts(mutexOnly),
    withEffect: await bundle(mutexOnly, ["ioredis"]),
    withIoredis: await bundle(mutexOnly, []),
    otherProvider: await bundle(`${operations}export { layerRedis } from "@effect-simba/redis/RedisMutex"`),
    inMemory: await bundle(`export { acquire, layerMemory, withLock } from "@effect-simba/core/Mutex"`),
    everything: await bundle(exporting([...barrels, ...barrels.map((name) => `${name}/streams`)])),
    withoutStreams: await bundle(exporting(barrels)),
    promise: await bundle(exporting(["@effect-simba/redis/promise"])),
    sqlFence: await bundle(exporting(["@effect-simba/core/SqlFence"])),
    ablation: await ablation(bundle)
  }
}

export class SizeError extends Schema.TaggedError<SizeError>()("SizeError", { message: Schema.String }) {}

export const sizes: Effect.Effect<Sizes, SizeError> = Effect.gen(function*() {
  const failure = yield* installed(esbuild)
  if (failure !== undefined) return yield* new SizeError({ message: failure })
  return yield* Effect.tryPromise({ try: measure, catch: (cause) => new SizeError({ message: String(cause) }) })
})
