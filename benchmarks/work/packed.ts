/** Builds the packages as they are published, into a separate application. */
import { execFile } from "node:child_process"
import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))
/** The application that has installed the packages. */
export const folder = fileURLToPath(new URL("../.packed/", import.meta.url))
const packages = ["core", "redis"]

export const run = (file: string, args: ReadonlyArray<string>, cwd: string) =>
  new Promise<{ readonly stdout: string; readonly failed: boolean }>((resolve) => {
    execFile(file, args, { cwd, maxBuffer: 1 << 26 }, (error, stdout) => resolve({ stdout, failed: error !== null }))
  })

interface Manifest {
  readonly name: string
  readonly version: string
  readonly sideEffects: unknown
  readonly publishConfig: { readonly exports: unknown }
}

/**
 * Builds the packages as for publishing, but into a separate folder, where they are resolved like installed packages.
 */
export const pack = async () => {
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
  await link("effect")
  await link("ioredis")
}

const link = async (name: string) => {
  const path = new URL(import.meta.resolve(name)).pathname
  const marker = `/node_modules/${name}/`
  const target = join(folder, "node_modules", name)
  await mkdir(dirname(target), { recursive: true })
  await rm(target, { force: true })
  await symlink(path.slice(0, path.lastIndexOf(marker) + marker.length - 1), target)
}
