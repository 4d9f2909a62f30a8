/** Installs each peer with npm in a separate folder, unless it is already installed. */
import { Effect, Exit } from "effect"
import { execFile } from "node:child_process"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { folderOf, loader } from "./folder.ts"
import type { Peer } from "./table.ts"

const installedVersion = async (folder: string, dependency: string) => {
  const text = await readFile(join(folder, "node_modules", dependency, "package.json"), "utf8").catch(() => "{}")
  return (JSON.parse(text) as { readonly version?: string }).version
}

const isInstalled = async (folder: string, { dependencies }: Peer) => {
  for (const [name, version] of Object.entries(dependencies)) {
    if (await installedVersion(folder, name) !== version) return false
  }
  return true
}

const npmInstall = (folder: string) =>
  new Promise<void>((resolve, reject) => {
    // Ignore peer dependencies, such as TypeScript or another client, that are not needed here
    const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps", "--loglevel=error"]
    const options = { cwd: folder, timeout: 180_000, shell: process.platform === "win32" }
    execFile("npm", args, options, (error, stdout, stderr) =>
      error === null ? resolve() : reject(new Error((stderr + stdout).trim() || error.message)))
  })

const install = async (peer: Peer) => {
  const folder = folderOf(peer.name)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, "load.mjs"), loader)
  if (await isInstalled(folder, peer)) return
  const manifest = { private: true, type: "module", dependencies: peer.dependencies }
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)
  await npmInstall(folder)
}

/** Installs a peer. If that fails, returns the reason. */
export const installed = (peer: Peer): Effect.Effect<string | undefined> =>
  Effect.map(
    Effect.exit(Effect.tryPromise({ try: () => install(peer), catch: (cause) => (cause as Error).message })),
    (exit) => Exit.isSuccess(exit) ? undefined : `not installed: ${String(exit.cause)}`.slice(0, 500)
  )
