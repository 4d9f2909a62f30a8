/** Checks out commits in separate folders and installs their dependencies, to compare two commits. */
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"

const run = promisify(execFile)

/** Returns the folder of a commit. Closing the scope removes it. */
export const checkout = (commit: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = join(await mkdtemp(join(tmpdir(), "effect-simba-bench-")), "tree")
      await run("git", ["worktree", "add", "--detach", folder, commit])
      await run("pnpm", ["install", "--frozen-lockfile", "--prefer-offline"], { cwd: folder })
      return folder
    }),
    (folder) =>
      Effect.promise(async () => {
        await run("git", ["worktree", "remove", "--force", folder])
        await rm(join(folder, ".."), { recursive: true, force: true })
      })
  ).pipe(Effect.map((folder) => pathToFileURL(`${folder}/`).href))
