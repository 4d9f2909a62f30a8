// Removes build output: each package's dist/, core's guides, the site, the playground, the compiler's build info files,
// and the scripts' caches.
import { rmSync } from "node:fs"
import { join } from "node:path"
import { packageFolders, root } from "./lib/workspace.mjs"

for (const folder of packageFolders) {
  rmSync(join(folder, "dist"), { recursive: true, force: true })
  rmSync(join(folder, "tsconfig.tsbuildinfo"), { force: true })
}
rmSync(join(root, "site/.build"), { recursive: true, force: true })
for (const name of ["dist", ".screenshots"]) rmSync(join(root, "playground", name), { recursive: true, force: true })
rmSync(join(root, "packages/core/docs"), { recursive: true, force: true })
rmSync(join(root, "node_modules/.cache"), { recursive: true, force: true })
