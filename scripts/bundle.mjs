// Writes the published JavaScript, packages/*/dist/**/*.js. The declarations beside it come from the compiler.
//
//   node scripts/bundle.mjs            # into packages
//   node scripts/bundle.mjs folder     # into folder/core/dist and so on
//
// An import mostly spends its time on resolving and reading files, so modules are bundled. Each public module keeps its
// own file, and shared code goes into a few files in dist/internal.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join, relative, resolve } from "node:path"
import { rolldown } from "rolldown"
import { annotatePure } from "./lib/annotate-pure.mjs"
import { barrelFolders, filesBelow, packageFolders, publicModules, root } from "./lib/workspace.mjs"

/**
 * The files in dist/internal, by package. Each file contains the modules that match its pattern, with everything that
 * they import. A module that matches several patterns goes into the first of these files. A module that matches no
 * pattern goes into its importers' files.
 */
const files = {
  core: { mutex: /src[\\/]Mutex\.ts$/, streams: /streams[\\/]StreamClient\.ts$/ },
  redis: {
    mutexScripts: /internal[\\/]mutex[\\/]scripts(?:\.generated)?\.ts$/,
    streamScripts: /streams[\\/]internal[\\/]scripts(?:\.generated)?\.ts$/,
    mutex: /internal[\\/]mutex[\\/]store\.ts$/,
    streams: /streams[\\/]internal[\\/]store\.ts$/,
    options: /ioredis[\\/](?:options|wallClock|connectionsDown)\.ts$/,
    // Separate from the drivers: a bundler keeps all exports of a driver's file, because it is loaded dynamically
    connections: /ioredis[\\/](?:commands|commandTimeouts|connection|failover|outageLog|subscriptions)\.ts$/
  },
  "fake-redis": {},
  testkit: {},
  cli: {}
}

/** Keeps barrels as lists of re-exports instead of bundling the public modules into them. */
const barrels = {
  name: "barrels",
  resolveId: (source, importer) =>
    importer !== undefined && basename(importer) === "index.ts"
      ? { id: source.replace(/\.ts$/, ".js"), external: true }
      : undefined
}

/** Packages that every program needs. */
const everywhere = new Set(["effect", "@effect-simba/core"])

/** Modules that are imported by their own path and need an optional peer. */
const namedPeers = { RedisSimulation: ["@effect-simba/testkit"] }

const indexes = (folder) =>
  barrelFolders(folder).map((barrel) => relative(join(folder, "src"), join(barrel, "index")).replaceAll("\\", "/"))

const packageOf = (specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)[0]

/** Everything that `start` reaches, including `start` itself. */
const reached = (start, importsOf, known = new Set()) => {
  if (known.has(start)) return known
  known.add(start)
  for (const next of importsOf(start)) reached(next, importsOf, known)
  return known
}

/** Packages that cannot be bundled, because they read files from their own folder. */
const unbundled = /^wasmoon-lua5\.1$/

/** The folder of the third-party package that a module belongs to; undefined for this repository's modules. */
const foreignFolder = (id) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(id)?.[0]

/** The script for package.json's `bin`. It makes Node cache the compiled program for the next start. */
const launcher = (name) =>
  `#!/usr/bin/env node\nimport module from "node:module"\nmodule.enableCompileCache?.()\nawait import("./${name}.main.js")\n`

/**
 * A program is one self-contained file, because it would otherwise start slowly: resolving and reading modules takes
 * most of the time.
 */
const bundlePrograms = async (folder, dist) => {
  const paths = filesBelow(join(folder, "src/bin"), (name) => name.endsWith(".ts"))
  if (paths.length === 0) return
  const build = await rolldown({
    input: Object.fromEntries(paths.map((path) => [basename(path, ".ts"), path])),
    cwd: folder,
    platform: "node",
    external: unbundled
  })
  const { output } = await build.write({
    dir: join(dist, "bin"),
    minify: true,
    codeSplitting: false,
    entryFileNames: "[name].main.js"
  })
  await build.close()
  for (const path of paths) {
    const name = basename(path, ".ts")
    writeFileSync(join(dist, `bin/${name}.js`), launcher(name), { mode: 0o755 })
  }
  const bundled = new Set(output.flatMap(({ moduleIds }) => moduleIds ?? []).map(foreignFolder).filter(Boolean))
  const licences = [...bundled].map((path) => {
    const { name, version } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"))
    const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name))
    if (file === undefined) throw new Error(`${name} has no licence to copy`)
    return `${name} ${version}\n\n${readFileSync(join(path, file), "utf8").trim()}\n`
  })
  writeFileSync(join(dist, "bin/LICENSES"), licences.sort().join("\n---\n\n"))
}

const bundle = async (folder, dist) => {
  const source = (module) => join(folder, "src", `${module}.ts`)
  const isExternal = (id) => /^[^./]/.test(id) && !id.startsWith(folder)
  const imported = new Map()
  const graph = { name: "graph", moduleParsed: ({ id, importedIds }) => void imported.set(id, importedIds) }

  const modules = publicModules(folder)
  if (modules.length === 0) return
  const build = await rolldown({
    input: Object.fromEntries(
      [...modules, ...indexes(folder)].map((module) => [module, source(module)])
    ),
    cwd: folder,
    platform: "neutral",
    external: isExternal,
    preserveEntrySignatures: "strict",
    experimental: { nativeMagicString: true },
    plugins: [barrels, graph, annotatePure]
  })
  for (const path of filesBelow(dist, (name) => /\.js(?:\.map)?$/.test(name))) rmSync(path)
  const wanted = Object.entries(files[basename(folder)])
  const { output } = await build.write({
    dir: dist,
    sourcemap: true,
    // The sources are published as files
    sourcemapExcludeSources: true,
    minify: false,
    minifyInternalExports: false,
    comments: { annotation: true, jsdoc: false, legal: true },
    entryFileNames: "[name].js",
    chunkFileNames: "internal/[name].js",
    codeSplitting: { groups: wanted.map(([name, test], at) => ({ name, test, priority: wanted.length - at })) }
  })
  await build.close()

  // A shared file must not make a module depend on another package, such as an optional peer.
  const chunks = new Map(output.filter(({ type }) => type === "chunk").map((chunk) => [chunk.fileName, chunk.imports]))
  const optional = Object.keys(
    JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).peerDependenciesMeta ?? {}
  )
  const packagesBelow = (start, importsOf) =>
    new Set([...reached(start, importsOf)].filter((id) => isExternal(id) && !chunks.has(id)).map(packageOf))
  for (const module of modules) {
    const importsOf = (file) => chunks.get(file) ?? []
    const needed = packagesBelow(source(module), (id) => imported.get(id) ?? []).union(everywhere)
    for (const name of packagesBelow(`${module}.js`, importsOf)) {
      // An optional peer must be imported dynamically, by a layer that needs it
      if (optional.includes(name) && !namedPeers[module]?.includes(name)) {
        throw new Error(`dist/${module}.js would import ${name}, an optional peer`)
      }
      if (!needed.has(name)) {
        throw new Error(`dist/${module}.js of ${basename(folder)} would import ${name}, although its sources do not`)
      }
    }
  }
}

const target = process.argv[2] ?? join(root, "packages")
for (const folder of packageFolders) {
  const dist = resolve(target, basename(folder), "dist")
  await bundle(folder, dist)
  await bundlePrograms(folder, dist)
}
