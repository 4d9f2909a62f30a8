// The tarballs, and an application outside of the repository that has installed them.
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { packageFolders, root } from "../lib/workspace.mjs"
import { fromTarballs, install, pinned } from "./consumer.mjs"
import { allWell, step } from "./report.mjs"
import { inspect, pack } from "./tarballs.mjs"

/** A folder that is removed with this process. */
export const temporaryFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), "effect-simba-pack-"))
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const needed = ["effect", "ioredis", "@effect/vitest", "vitest", "@types/node", "typescript"]

/** Packages that the consumer needs besides those that the workspace pins at its root. */
const examples = JSON.parse(readFileSync(join(root, "examples/package.json"), "utf8")).dependencies

/** Packs and installs; `versions` are those of packages that the workspace pins differently, or not at all. */
export const packedConsumer = async (temporary, versions = {}, overrides = {}) => {
  const packed = []
  await step("tarballs", async () => {
    for (const folder of packageFolders) packed.push(await pack(folder, temporary))
    await Promise.all(packed.map(inspect))
    return packed.map(({ tarball }) => basename(tarball)).join(", ")
  })
  const consumer = join(temporary, "consumer")
  if (allWell()) {
    await step("npm install in an empty folder", () =>
      install(consumer, {
        ...fromTarballs(packed),
        ...Object.fromEntries(needed.map((name) => [name, pinned[name]])),
        "@effect/platform-node": examples["@effect/platform-node"],
        ...versions
      }, overrides))
  }
  return { consumer, packed }
}
