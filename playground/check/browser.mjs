// The browser of this machine.
import { spawnSync } from "node:child_process"

/** The path of a Chromium, if there is one. */
export const executable = () =>
  ["chromium", "chromium-browser", "google-chrome"].flatMap((name) => {
    const { status, stdout } = spawnSync("which", [name], { encoding: "utf8" })
    return status === 0 ? [stdout.trim()] : []
  })[0]
