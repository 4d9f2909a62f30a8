/** Starts Node.js processes for multi-process tests. */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

export interface NodeProcess<Report> {
  readonly child: ChildProcess
  /** The messages sent by the process so far. */
  readonly reports: ReadonlyArray<Report>
  /** Returns the last 4,000 characters of the process's output. */
  readonly output: () => string
}

/** Caches compiled code, because compilation takes most of a process's startup time. */
const compileCache = fileURLToPath(new URL("../../../../node_modules/.cache/node-compile", import.meta.url))

/**
 * Runs a file in this folder until the scope closes. The file reads `config`, as JSON, from the environment variable
 * named by `variable`.
 */
export const startNode = <Report>(
  file: string,
  variable: string,
  config: unknown
): Effect.Effect<NodeProcess<Report>, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url))], {
        env: {
          ...process.env,
          NODE_OPTIONS: "",
          NODE_COMPILE_CACHE: compileCache,
          [variable]: JSON.stringify(config)
        },
        stdio: ["ignore", "pipe", "pipe", "ipc"]
      })
      const reports: Array<Report> = []
      let output = ""
      const keep = (chunk: Buffer) => {
        output = (output + chunk.toString("utf8")).slice(-4000)
      }
      child.stdout!.on("data", keep)
      child.stderr!.on("data", keep)
      child.on("message", (report) => reports.push(report as Report))
      return { child, reports, output: () => output }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )
