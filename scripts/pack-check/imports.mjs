// Checks that each module can be imported both by its own path and as a namespace of its package, with the same
// exports, and that internal modules cannot be imported.
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join, posix } from "node:path"
import { filesBelow, outsideBarrels, shown } from "../lib/workspace.mjs"
import { system } from "./consumer.mjs"
import { must } from "./report.mjs"

/** Whether a module imports @effect/vitest, directly or indirectly. Such a module loads only within vitest. */
const needsVitest = (folder, module, known = new Set()) => {
  const path = join(folder, module)
  if (known.has(path) || !existsSync(path)) return false
  known.add(path)
  const imported = [...readFileSync(path, "utf8").matchAll(/^(?:import|export)\b[^"]*"([^"]+)"/gm)]
  return imported.some(([, name]) =>
    /^(?:@effect\/vitest|vitest)(?:\/|$)/.test(name) ||
    (name.startsWith(".") && needsVitest(join(path, ".."), name, known))
  )
}

/** The public modules, each with its import path, the barrel that exports it if there is one, and its name there. */
const placesOf = ({ modules, name }) =>
  modules.map((module) => {
    const own = posix.basename(module)
    const barrel = posix.join(name, posix.dirname(module))
    return { path: `${name}/${module}`, name: own, barrel: outsideBarrels.has(own) ? undefined : barrel }
  })

/** Code for the compiler, which asserts that each namespace has the same type as the module imported by its path. */
export const typesOfImports = (packed) =>
  `${
    packed.flatMap(placesOf).flatMap(({ barrel, name, path }, at) => [
      `import * as Single${at} from "${path}"`,
      ...(barrel === undefined ? [`export type Alone${at} = typeof Single${at}`] : [
        `import { ${name} as Root${at} } from "${barrel}"`,
        `export const same${at}: typeof Root${at} = Single${at}`
      ])
    ]).join("\n")
  }\n`

const checks = `import { isDeepStrictEqual } from "node:util"
let failed = 0
const fail = (text) => { failed += 1; console.error(text) }
const same = async (path, barrel, name) => {
  const single = await import(path)
  if (barrel === undefined) return
  const namespace = (await import(barrel))[name]
  if (namespace === undefined) return fail(barrel + " does not export " + name)
  if (!isDeepStrictEqual(Object.keys(namespace), Object.keys(single))) fail(path + " differs from " + name + " in " + barrel)
}
const refused = (path) => import(path).then(
  () => fail(path + " can be imported, but is internal"),
  (error) => error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED" || fail(path + " is refused with an unexpected error: " + error)
)
`

/** Imports everything on the system's Node. */
export const checkImports = async (folder, packed) => {
  const calls = packed.flatMap((one) => {
    const dist = join(one.folder, "dist")
    const fileOf = (specifier) => `${specifier.slice(one.name.length + 1) || "."}`
    const loads = (file) => !needsVitest(dist, file)
    const internal = filesBelow(join(dist, "internal"), (file) => file.endsWith(".js"))
      .map((path) => shown(path).slice(`${shown(dist)}/`.length, -".js".length))
    return [
      ...placesOf(one).filter(({ path }) => loads(`${fileOf(path)}.js`)).map(({ barrel, name, path }) => {
        const usable = barrel !== undefined && loads(posix.join(fileOf(barrel), "index.js"))
        return `await same("${path}", ${usable ? `"${barrel}"` : "undefined"}, "${name}")`
      }),
      ...["index", "internal/anything", "streams/index", "streams/internal/anything", ...internal]
        .map((path) => `await refused("${one.name}/${path}")`)
    ]
  })
  writeFileSync(
    join(folder, "imports.mjs"),
    `${checks}${calls.join("\n")}\nprocess.exitCode = failed > 0 ? 1 : 0\n`
  )
  await must("imports on the system's Node", "node", ["imports.mjs"], { cwd: folder, env: system })
}
