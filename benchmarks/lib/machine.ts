/** Describes the machine and the software versions of a run. */
import type { Redis } from "ioredis"
import { readFile } from "node:fs/promises"
import { cpus, release, totalmem, type as systemName } from "node:os"
import { peers } from "../peers/table.ts"

export interface Circumstances {
  readonly at: string
  readonly machine: {
    readonly cpu: string
    readonly cores: number
    readonly memoryGigabytes: number
    readonly system: string
  }
  readonly versions: Readonly<Record<string, string>>
  readonly peers: Readonly<Record<string, Readonly<Record<string, string>>>>
}

const versionOf = async (module: string) => {
  // A package's `exports` may not contain its package.json, so find the folder by the module's path
  const path = new URL(import.meta.resolve(module)).pathname
  const folder = path.slice(0, path.lastIndexOf(`/node_modules/${module}/`) + `/node_modules/${module}/`.length)
  return (JSON.parse(await readFile(`${folder}package.json`, "utf8")) as { readonly version: string }).version
}

const ownVersion = async () => {
  const text = await readFile(new URL("../../packages/core/package.json", import.meta.url), "utf8")
  return (JSON.parse(text) as { readonly version: string }).version
}

export const circumstances = async (admin: Redis): Promise<Circumstances> => {
  const info = await admin.info("server")
  return {
    at: new Date().toISOString(),
    machine: {
      cpu: cpus()[0]?.model ?? "unknown",
      cores: cpus().length,
      memoryGigabytes: Math.round(totalmem() / 2 ** 30),
      system: `${systemName()} ${release()}`
    },
    versions: {
      "effect-simba": await ownVersion(),
      node: process.versions.node,
      "redis-server": /redis_version:(\S+)/.exec(info)?.[1] ?? "unknown",
      effect: await versionOf("effect"),
      ioredis: await versionOf("ioredis")
    },
    peers: Object.fromEntries(peers.map(({ dependencies, name }) => [name, dependencies]))
  }
}
