/** Node processes that tests start. */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

export interface NodeProcess<Report> {
  readonly child: ChildProcess
  /** The messages that the process has sent so far. */
  readonly reports: ReadonlyArray<Report>
  /** The end of the process's output. */
  readonly output: () => string
}

/** Compiling is most of the cost of starting a process, so compiled code is kept. */
const compileCache = fileURLToPath(new URL("../../../../node_modules/.cache/node-compile", import.meta.url))

/** Runs a file of this folder, which reads `config` as JSON from the environment variable, until the scope closes. */
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
