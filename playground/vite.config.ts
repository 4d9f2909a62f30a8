/** Builds the page, which runs in the browser without Node. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { defineConfig, type Plugin } from "vite"

/** Replaces modules that the page never calls, such as the driver for real servers. */
const absent = fileURLToPath(new URL("./src/absent.cjs", import.meta.url))

/** Copies the Lua VM's wasm file next to the page, where the VM expects it. */
const lua: Plugin = {
  name: "lua",
  generateBundle() {
    const engine = createRequire(createRequire(import.meta.url).resolve("@effect-simba/fake-redis/package.json"))
    const path = engine.resolve("wasmoon-lua5.1").replace(/index\.js$/, "liblua5.1.wasm")
    this.emitFile({ type: "asset", fileName: "liblua5.1.wasm", source: readFileSync(path) })
  }
}

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  // The page works under any path, such as the documentation's
  base: "./",
  resolve: { alias: [{ find: /^(?:ioredis|url|module|node:.*)$/, replacement: absent }] },
  plugins: [lua],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    outDir: "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 2000
  },
  preview: { host: "127.0.0.1", port: 4174 }
})
