/** Assembles the `effect-simba` commands and reports their errors. */
import * as Cause from "effect/Cause"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Logger from "effect/Logger"
import * as Path from "effect/Path"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import { bench } from "./bench.ts"
import { doctor } from "./doctor.ts"
import { messageOf, Partly } from "./exitCodes.ts"
import { jobs } from "./jobCommands.ts"
import { mutexCommands } from "./mutexCommands.ts"
import { presenter } from "./presenter.ts"
import { runCommand } from "./runCommand.ts"
import * as serverNames from "./serverNames.ts"
import { settings } from "./settings.ts"
import { streams } from "./streamCommands.ts"
import { watch } from "./watch.ts"

const command = Command.make("effect-simba").pipe(
  Command.withDescription("Inspect and manage the mutexes, jobs and data streams on a Redis server"),
  Command.withSubcommands([...mutexCommands, watch, runCommand, jobs, streams, doctor, bench]),
  Command.withGlobalFlags(settings)
)

const Package = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))

const versionIn = Effect.fnUntraced(function*(packageFile: URL) {
  const path = yield* Effect.flatMap(Path.Path, (paths) => paths.fromFileUrl(packageFile))
  const text = yield* Effect.flatMap(FileSystem.FileSystem, (files) => files.readFileString(path))
  return (yield* Schema.decodeEffect(Package)(text)).version
})

/**
 * Whether to print errors as JSON. Looks only for `--json`, so it works even if the flags cannot be parsed. Words after
 * `--` belong to the command that `run` starts.
 */
const wantsJson = (args: ReadonlyArray<string>) => {
  const end = args.indexOf("--")
  return args.slice(0, end < 0 ? args.length : end).some((arg) => /^--json(?:=(?:true|1|y|yes|on))?$/.test(arg))
}

/** The shell for which a completion script was requested. */
const shellOf = (args: ReadonlyArray<string>) =>
  args.flatMap((arg, at) =>
    arg === "--completions" ? args.slice(at + 1, at + 2) : arg.split("--completions=").slice(1)
  )[0]

export const main = Effect.fnUntraced(function*(packageFile: URL) {
  const version = yield* versionIn(packageFile)
  const args = yield* (yield* Stdio.Stdio).args
  if (args[0] === serverNames.flag) return yield* serverNames.printNames(args.slice(1))
  const isJson = wantsJson(args)
  yield* Command.run(command, { version }).pipe(
    Effect.tap(() => {
      const script = serverNames.completionsOf[shellOf(args) ?? ""]
      return script === undefined ? Effect.void : Console.log(script)
    }),
    Effect.tapCause((cause) => {
      const error = Cause.squash(cause)
      const message = Cause.hasInterruptsOnly(cause) ? undefined : messageOf(error, isJson)
      if (message === undefined) return Effect.void
      return isJson && !(error instanceof Partly) ? Console.log(message) : Console.error(message)
    }),
    Effect.provideService(CliOutput.Presenter, presenter(isJson)),
    Effect.provideService(References.MinimumLogLevel, "Error"),
    // Logs to standard error, because standard output is only for results. Logs only errors by default: a warning about
    // a lost lease would repeat the command's own report.
    Effect.provideService(Logger.LogToStderr, true)
  )
})
