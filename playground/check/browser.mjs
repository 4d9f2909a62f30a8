// Finds a browser for the page checks.
import { spawnSync } from "node:child_process"

/** Returns the path of Chromium or Chrome, if it is installed. */
export const executable = () =>
  ["chromium", "chromium-browser", "google-chrome"].flatMap((name) => {
    const { status, stdout } = spawnSync("which", [name], { encoding: "utf8" })
    return status === 0 ? [stdout.trim()] : []
  })[0]
