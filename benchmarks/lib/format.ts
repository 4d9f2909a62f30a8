/** Formats the files that the suite writes, because they are committed to the repository. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))

export const format = (file: URL): Promise<void> =>
  new Promise((resolve, reject) => {
    execFile("npx", ["--no-install", "dprint", "fmt", fileURLToPath(file)], { cwd: root }, (error, stdout, stderr) =>
      error === null ? resolve() : reject(new Error(`dprint: ${stdout}${stderr}`)))
  })
