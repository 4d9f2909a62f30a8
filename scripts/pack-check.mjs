// Packs the packages as they would be published and uses them as a stranger would: in an empty folder elsewhere,
// installed with npm, compiled with strict settings, run on the Node of the system. Needs a finished `pnpm build`.
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { systemEnvironment } from "./lib/system.mjs"
import { filesBelow, packageFolders, publicModules, root, shown } from "./lib/workspace.mjs"

const windows = process.platform === "win32"
const temporary = mkdtempSync(join(tmpdir(), "effect-simba-pack-"))
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }))

const problems = []
const expect = (condition, problem) => {
  if (!condition) problems.push(problem)
}

const run = (command, args, options = {}) =>
  new Promise((resolve) => {
    const settings = { cwd: root, maxBuffer: 1 << 26, shell: windows, ...options }
    execFile(command, args, settings, (error, stdout, stderr) =>
      resolve({ failed: error !== null, text: stdout + stderr }))
  })
const must = async (what, command, args, options) => {
  const { failed, text } = await run(command, args, options)
  if (failed) problems.push(`${what}:\n${text.trim()}`)
  return text
}

const pnpm = () => {
  const starter = process.env.npm_execpath ?? ""
  if (/pnpm(?:\.exe)?$/.test(starter)) return starter
  const local = join(root, ".bootstrap/node_modules/.bin/pnpm")
  return existsSync(local) ? local : "pnpm"
}

/** The compiler leaves the declarations of deleted modules behind; they must not be published. */
const prune = (folder) => {
  for (const path of filesBelow(join(folder, "dist"), (file) => /\.d\.ts(?:\.map)?$/.test(file))) {
    const module = shown(path).replace(/\.d\.ts(?:\.map)?$/, ".ts").replace("/dist/", "/src/")
    if (!existsSync(join(root, module))) rmSync(path)
  }
}

const pack = async (folder) => {
  prune(folder)
  const license = join(folder, "LICENSE")
  expect(
    existsSync(license) && readFileSync(license, "utf8") === readFileSync(join(root, "LICENSE"), "utf8"),
    `${shown(license)} is not a copy of LICENSE`
  )
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  await must(`pnpm pack in ${shown(folder)}`, pnpm(), ["pack", "--pack-destination", temporary], { cwd: folder })
  const tarball = join(temporary, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`)
  return { folder, name, tarball, modules: publicModules(folder) }
}

/** What is in the tarball, and what its package.json says. */
const inspect = async ({ folder, name, tarball }) => {
  const files = (await must(`${name}: tar`, "tar", ["-tzf", tarball])).trim().split(/\r?\n/).sort()
  const surplus = files.filter((file) =>
    !/^package\/(?:package\.json|LICENSE|README\.md|CHANGELOG\.md|src\/.+\.(?:ts|lua)|dist\/.+\.(?:js|d\.ts)(?:\.map)?)$/
      .test(file)
  )
  expect(surplus.length === 0, `${name}: must not be packed: ${surplus.join(", ")}`)
  for (const source of filesBelow(join(folder, "src"), (file) => file.endsWith(".ts"))) {
    const stem = shown(source).slice(`${shown(folder)}/src/`.length, -".ts".length)
    // Internal modules are bundled into files of other names
    const isInternal = /(?:^|\/)internal\//.test(stem)
    for (const file of [`src/${stem}.ts`, `dist/${stem}.d.ts`, ...(isInternal ? [] : [`dist/${stem}.js`])]) {
      expect(files.includes(`package/${file}`), `${name}: ${file} is missing in the package`)
    }
  }
  for (const path of filesBelow(join(folder, "dist"), (file) => file.endsWith(".map"))) {
    for (const source of JSON.parse(readFileSync(path, "utf8")).sources) {
      const file = shown(join(path, "..", source)).slice(`${shown(folder)}/`.length)
      expect(files.includes(`package/${file}`), `${name}: ${shown(path)} leads to ${file}, which is not in the package`)
    }
  }
  const manifest = await must(`${name}: tar`, "tar", ["-xzOf", tarball, "package/package.json"])
  expect(!manifest.includes("workspace:"), `${name}: the package still names a workspace: dependency`)
  expect(!/"\.\/src\//.test(manifest), `${name}: the exports of the package still name sources`)
}

const publint = ({ name, tarball }) => must(`${name}: publint`, "publint", [tarball, "--strict"])
const typesWrong = ({ name, tarball }) =>
  must(`${name}: are the types wrong?`, "attw", [tarball, "--profile", "esm-only", "--no-color", "--no-emoji"])

/** Whether a module, or one that it imports, imports @effect/vitest: such a module loads only within vitest. */
const needsVitest = (folder, module, seen = new Set()) => {
  const path = join(folder, module)
  if (seen.has(path) || !existsSync(path)) return false
  seen.add(path)
  const imported = [...readFileSync(path, "utf8").matchAll(/^(?:import|export)\b[^"]*"([^"]+)"/gm)].map((match) =>
    match[1]
  )
  return imported.some((name) =>
    /^(?:@effect\/vitest|vitest)(?:\/|$)/.test(name) ||
    (name.startsWith(".") && needsVitest(join(path, ".."), name, seen))
  )
}

const project = join(temporary, "consumer")
const node = systemEnvironment()
const inProject = { cwd: project, env: node }

const install = async (packed) => {
  mkdirSync(project)
  const { devDependencies: versions } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const needed = ["effect", "ioredis", "@effect/vitest", "vitest", "@types/node", "typescript"]
  writeFileSync(
    join(project, "package.json"),
    JSON.stringify({
      name: "consumer",
      private: true,
      type: "module",
      dependencies: Object.fromEntries([
        ...packed.map(({ name, tarball }) => [name, `file:${tarball}`]),
        ...needed.map((name) => [name, versions[name]])
      ])
    })
  )
  const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
  await must("npm install of the packages in an empty folder", "npm", ["install", ...quiet], inProject)
}

const writeConsumer = (packed) => {
  const strict = {
    target: "ES2022",
    module: "NodeNext",
    outDir: "out",
    rootDir: ".",
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    skipLibCheck: true,
    types: ["node"]
  }
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: strict, include: ["*.ts"] }))
  writeFileSync(join(project, "consumer.ts"), readFileSync(join(root, "scripts/pack-check/consumer.ts"), "utf8"))

  // Types: each module as a namespace of the package root, and alone.
  const imports = packed.flatMap(({ modules, name }, at) =>
    modules.flatMap((module) => [
      `import { ${module} as Root${at}${module} } from "${name}"`,
      `import * as Single${at}${module} from "${name}/${module}"`,
      `export const same${at}${module}: typeof Root${at}${module} = Single${at}${module}`
    ])
  )
  writeFileSync(join(project, "imports.ts"), `${imports.join("\n")}\nexport {}\n`)

  // At run time: the same, and nothing internal.
  const checks = packed.flatMap(({ folder, modules, name }) => {
    const dist = join(folder, "dist")
    const internal = filesBelow(join(dist, "internal"), (file) => file.endsWith(".js"))
      .map((path) => shown(path).slice(`${shown(dist)}/`.length, -".js".length))
    return [
      ...modules
        .filter((module) => !needsVitest(dist, `${module}.js`))
        .map((module) => `await same("${name}", "${module}", ${!needsVitest(dist, "index.js")})`),
      ...["index", "internal/anything", ...internal]
        .map((path) => `await refused("${name}/${path}")`)
    ]
  })
  writeFileSync(
    join(project, "imports.mjs"),
    `import { isDeepStrictEqual } from "node:util"
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
${checks.join("\n")}
process.exitCode = failed > 0 ? 1 : 0
`
  )
}

const consume = async (packed) => {
  await install(packed)
  if (problems.length > 0) return
  writeConsumer(packed)
  const tsc = join(project, "node_modules/typescript/bin", readdirSync(join(project, "node_modules/typescript/bin"))[0])
  const [, { failed }] = await Promise.all([
    must("imports on the system's Node", "node", ["imports.mjs"], inProject),
    run("node", [tsc, "-p", "."], inProject).then((result) => {
      if (result.failed) problems.push(`compiling against the packages:\n${result.text.trim()}`)
      return result
    })
  ])
  if (!failed) {
    console.log((await must("scripts/pack-check/consumer.ts", "node", ["out/consumer.js"], inProject)).trim())
  }
}

const packed = []
for (const folder of packageFolders) packed.push(await pack(folder))
if (problems.length === 0) {
  await Promise.all(packed.map(inspect))
  await Promise.all([
    consume(packed),
    (async () => {
      for (const one of packed) await Promise.all([publint(one), typesWrong(one)])
    })()
  ])
}
const version = (await run("node", ["--version"], { env: node })).text.trim()
const modules = packed.reduce((sum, one) => sum + one.modules.length, 0)
if (problems.length > 0) {
  console.error(problems.join("\n\n"))
  process.exitCode = 1
} else {
  console.log(
    `${packed.map(({ tarball }) => basename(tarball)).join(", ")}: ${modules} modules, used on Node ${version}`
  )
}
