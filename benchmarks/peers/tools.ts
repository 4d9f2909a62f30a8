/** Measuring tools, which are installed like the peers. */
import type { Peer } from "./table.ts"

export const esbuild: Peer = { name: "esbuild", dependencies: { esbuild: "0.28.2" }, fast: "" }
