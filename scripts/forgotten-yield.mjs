// Checks that a forgotten `yield*` is a compiler error. Only the patched compiler detects an Effect that is neither
// yielded nor used, so this check also fails if the patch is missing.
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./lib/workspace.mjs"

const folder = mkdtempSync(join(root, "node_modules/.forgotten-yield-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
writeFileSync(
  join(folder, "tsconfig.json"),
  JSON.stringify({
    extends: join(root, "tsconfig.base.json"),
    files: ["forgotten.ts"],
    compilerOptions: { composite: false, declarationMap: false, incremental: false, noEmit: true, rootDir: "." }
  })
)
writeFileSync(
  join(folder, "forgotten.ts"),
  `import * as Effect from "effect/Effect"\nexport const f = Effect.gen(function*() {\n  Effect.log("x")\n})\n`
)
const { stdout } = spawnSync("tsc", ["-p", folder], { encoding: "utf8", shell: process.platform === "win32" })
if (!stdout.includes("floatingEffect")) {
  console.error(`The compiler did not report a forgotten yield*: is it patched (\`pnpm install\`)?\n${stdout}`)
  process.exitCode = 1
}
