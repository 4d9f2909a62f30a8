// Packs the packages as they would be published, and checks the tarballs' contents.
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join, posix } from "node:path"
import { filesBelow, publicModules, root, shown } from "../lib/workspace.mjs"
import { must, problem } from "./report.mjs"

const expect = (condition, otherwise) => {
  if (!condition) problem(otherwise)
}

const pnpm = () => {
  const starter = process.env.npm_execpath ?? ""
  if (/pnpm(?:\.exe)?$/.test(starter)) return starter
  const local = join(root, ".bootstrap/node_modules/.bin/pnpm")
  return existsSync(local) ? local : "pnpm"
}

/** Removes the declarations of deleted modules. The compiler leaves them behind, and they must not be published. */
const prune = (folder) => {
  for (const path of filesBelow(join(folder, "dist"), (file) => /\.d\.ts(?:\.map)?$/.test(file))) {
    const module = shown(path).replace(/\.d\.ts(?:\.map)?$/, ".ts").replace("/dist/", "/src/")
    if (!existsSync(join(root, module))) rmSync(path)
  }
}

/** Packs a package into the `destination` folder. */
export const pack = async (folder, destination) => {
  prune(folder)
  const license = join(folder, "LICENSE")
  expect(
    existsSync(license) && readFileSync(license, "utf8") === readFileSync(join(root, "LICENSE"), "utf8"),
    `${shown(license)} is not a copy of LICENSE`
  )
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const windows = process.platform === "win32"
  await must(`pnpm pack in ${shown(folder)}`, pnpm(), ["pack", "--pack-destination", destination], {
    cwd: folder,
    shell: windows
  })
  const tarball = join(destination, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`)
  return { folder, name, tarball, modules: publicModules(folder) }
}

const allowed =
  /^package\/(?:package\.json|LICENSE|(?:README|AGENTS|CHANGELOG)\.md|docs\/[\w-]+\.md|docs\/examples\/(?:(?:shared|test)\/)?[\w.-]+\.ts|docs\/grafana\/[\w.-]+|src\/.+\.(?:ts|lua)|dist\/bin\/LICENSES|dist\/.+\.(?:js|d\.ts)(?:\.map)?)$/

/**
 * Checks that relative links in a page lead to files in the same tarball, except links to the "Not on npm yet" section,
 * which the first release removes.
 */
const checkLinks = ({ folder, name }, files) => {
  for (const page of files.filter((file) => file.endsWith(".md"))) {
    const text = readFileSync(join(folder, page.slice("package/".length)), "utf8")
    for (const [, target] of text.matchAll(/\]\(([^)#:]+)(?!#not-on-npm-yet)(?:#[^)]*)?\)/g)) {
      const path = posix.join(posix.dirname(page), target)
      expect(files.includes(path), `${name}: ${page} links to ${target}, which is not in the package`)
    }
  }
}

/**
 * Checks that nothing is missing from the tarball, nothing is superfluous, and its package.json refers to published
 * files.
 */
export const inspect = async ({ folder, modules, name, tarball }) => {
  const files = (await must(`${name}: tar`, "tar", ["-tzf", tarball])).split(/\r?\n/).sort()
  const surplus = files.filter((file) => !allowed.test(file))
  expect(surplus.length === 0, `${name}: must not be packed: ${surplus.join(", ")}`)
  for (const page of ["README.md", "AGENTS.md"]) {
    expect(files.includes(`package/${page}`), `${name}: ${page} is missing from the package`)
  }
  checkLinks({ folder, name }, files)
  // A package that has only programs publishes no sources
  const sources = modules.length === 0 ? [] : filesBelow(join(folder, "src"), (file) => file.endsWith(".ts"))
  for (const source of sources) {
    const stem = shown(source).slice(`${shown(folder)}/src/`.length, -".ts".length)
    // Internal modules are bundled into files with other names
    const isInternal = /(?:^|\/)internal\//.test(stem)
    for (const file of [`src/${stem}.ts`, `dist/${stem}.d.ts`, ...(isInternal ? [] : [`dist/${stem}.js`])]) {
      expect(files.includes(`package/${file}`), `${name}: ${file} is missing from the package`)
    }
  }
  const maps = filesBelow(join(folder, "dist"), (file) => file.endsWith(".map"))
  for (
    const path of maps.filter((path) => files.includes(`package/${shown(path).slice(`${shown(folder)}/`.length)}`))
  ) {
    for (const source of JSON.parse(readFileSync(path, "utf8")).sources) {
      const file = shown(join(path, "..", source)).slice(`${shown(folder)}/`.length)
      expect(files.includes(`package/${file}`), `${name}: ${shown(path)} leads to ${file}, which is not in the package`)
    }
  }
  const manifest = await must(`${name}: tar`, "tar", ["-xzOf", tarball, "package/package.json"])
  expect(!manifest.includes("workspace:"), `${name}: the package still names a workspace: dependency`)
  expect(!/"\.\/src\//.test(manifest), `${name}: the package's exports still name sources`)
}

/** Runs publint and "are the types wrong?" on a tarball. */
export const lint = async ({ modules, name, tarball }) => {
  const bin = (tool) => join(root, "node_modules/.bin", tool)
  await must(`${name}: publint`, bin("publint"), [tarball, "--strict"])
  if (modules.length === 0) return
  await must(`${name}: are the types wrong?`, bin("attw"), [
    tarball,
    "--profile",
    "esm-only",
    "--no-color",
    "--no-emoji"
  ])
}
