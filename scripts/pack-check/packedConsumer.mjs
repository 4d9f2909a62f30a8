// Packs the packages and installs them in an application outside the repository.
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { packageFolders, root } from "../lib/workspace.mjs"
import { fromTarballs, install, pinned } from "./consumer.mjs"
import { allWell, step } from "./report.mjs"
import { inspect, pack } from "./tarballs.mjs"

/** Creates a temporary folder, which is removed when this process exits. */
export const temporaryFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), "effect-simba-pack-"))
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const needed = ["effect", "ioredis", "@effect/vitest", "vitest", "@types/node", "typescript"]

/** The source of versions for packages that the workspace does not pin at its root. */
const examples = JSON.parse(readFileSync(join(root, "examples/package.json"), "utf8")).dependencies

/** Packs and installs the packages. `versions` adds dependencies or overrides their pinned versions. */
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
