/** Runs `effect-simba` with pipes or in a pseudo-terminal. */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { openSync } from "node:fs"
import { fileURLToPath } from "node:url"

const program = fileURLToPath(new URL("../../src/bin/effectSimba.ts", import.meta.url))
const compileCache = fileURLToPath(new URL("../../../../node_modules/.cache/node-compile", import.meta.url))

export interface Run {
  readonly child: ChildProcess
  readonly output: () => string
  readonly errors: () => string
  readonly write: (text: string) => void
  /** The program's exit code. */
  readonly ended: Effect.Effect<number>
}

export interface RunOptions {
  readonly url: string
  /** Runs the program in a terminal with 100 columns and 30 rows, in which keys such as Ctrl-C send signals. */
  readonly terminal?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** A file to which standard output is written. */
  readonly output?: string
}

const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`

/** Starts the program, and kills it when the scope closes. */
export const start = (
  args: ReadonlyArray<string>,
  { env, output: file, terminal = false, url }: RunOptions
): Effect.Effect<Run, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const words = [process.execPath, program, ...args]
      // `script` from util-linux opens the pseudo-terminal, and exits with the program's exit code
      const [command, ...rest] = terminal
        ? ["script", "-qefc", `stty cols 100 rows 30; ${words.map(quoted).join(" ")}`, "/dev/null"]
        : words
      const child = spawn(command!, rest, {
        env: {
          ...process.env,
          NODE_OPTIONS: "",
          NODE_COMPILE_CACHE: compileCache,
          NO_COLOR: "",
          FORCE_COLOR: "",
          TERM: "xterm-256color",
          REDIS_URL: url,
          ...env
        },
        stdio: ["pipe", file === undefined ? "pipe" : openSync(file, "w"), "pipe"]
      })
      let output = ""
      let errors = ""
      child.stdout?.on("data", (chunk: Buffer) => output += chunk.toString("utf8"))
      child.stderr?.on("data", (chunk: Buffer) => errors += chunk.toString("utf8"))
      const closed = new Promise<number>((resolve) => child.on("close", (code) => resolve(code ?? -1)))
      return {
        child,
        output: () => output,
        errors: () => errors,
        write: (text: string) => void child.stdin?.write(text),
        ended: Effect.promise(() => closed)
      }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

export const run = (args: ReadonlyArray<string>, options: RunOptions) =>
  Effect.scoped(Effect.gen(function*() {
    const { ended, errors, output } = yield* start(args, options)
    const code = yield* ended
    return { code, output: output(), errors: errors() }
  }))

export const json = (args: ReadonlyArray<string>, options: RunOptions) =>
  Effect.map(run([...args, "--json"], options), ({ code, errors, output }) => {
    if (output === "") throw new Error(`no JSON (exit code ${code}): ${errors}`)
    return JSON.parse(output)
  })
