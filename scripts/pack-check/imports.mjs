// Each module can be imported alone and as a namespace of its package, both are the same, and nothing internal is offered.
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { filesBelow, shown } from "../lib/workspace.mjs"
import { system } from "./consumer.mjs"
import { must } from "./report.mjs"

/** Whether a module, or one that it imports, imports @effect/vitest: such a module loads only within vitest. */
const needsVitest = (folder, module, seen = new Set()) => {
  const path = join(folder, module)
  if (seen.has(path) || !existsSync(path)) return false
  seen.add(path)
  const imported = [...readFileSync(path, "utf8").matchAll(/^(?:import|export)\b[^"]*"([^"]+)"/gm)]
  return imported.some(([, name]) =>
    /^(?:@effect\/vitest|vitest)(?:\/|$)/.test(name) ||
    (name.startsWith(".") && needsVitest(join(path, ".."), name, seen))
  )
}

/** A module for the compiler: each namespace has the type of the module alone. */
export const typesOfImports = (packed) =>
  `${
    packed.flatMap(({ modules, name }, at) =>
      modules.flatMap((module) => [
        `import { ${module} as Root${at}${module} } from "${name}"`,
        `import * as Single${at}${module} from "${name}/${module}"`,
        `export const same${at}${module}: typeof Root${at}${module} = Single${at}${module}`
      ])
    ).join("\n")
  }\n`

const checks = `import { isDeepStrictEqual } from "node:util"
let failed = 0
const fail = (text) => { failed += 1; console.error(text) }
const same = async (name, module, withRoot) => {
  const single = await import(name + "/" + module)
  if (!withRoot) return
  const namespace = (await import(name))[module]
  if (namespace === undefined) return fail(name + " does not export " + module)
  if (!isDeepStrictEqual(Object.keys(namespace), Object.keys(single))) fail(name + "/" + module + " differs from " + module + " of " + name)
}
const refused = (path) => import(path).then(
  () => fail(path + " can be imported, but is internal"),
  (error) => error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED" || fail(path + " is refused otherwise than expected: " + error)
)
`

/** Imports all of it on the Node of the system. */
export const checkImports = async (folder, packed) => {
  const calls = packed.flatMap(({ folder, modules, name }) => {
    const dist = join(folder, "dist")
    const internal = filesBelow(join(dist, "internal"), (file) => file.endsWith(".js"))
      .map((path) => shown(path).slice(`${shown(dist)}/`.length, -".js".length))
    const loads = modules.filter((module) => !needsVitest(dist, `${module}.js`))
    return [
      ...loads.map((module) => `await same("${name}", "${module}", ${!needsVitest(dist, "index.js")})`),
      ...["index", "internal/anything", ...internal].map((path) => `await refused("${name}/${path}")`)
    ]
  })
  writeFileSync(
    join(folder, "imports.mjs"),
    `${checks}${calls.join("\n")}\nprocess.exitCode = failed > 0 ? 1 : 0\n`
  )
  await must("imports on the system's Node", "node", ["imports.mjs"], { cwd: folder, env: system })
}
