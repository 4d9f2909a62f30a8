/** The commands of `effect-simba`, and how their errors are told. */
import * as Cause from "effect/Cause"
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
import { messageOf } from "./exitCodes.ts"
import { mutexCommands } from "./mutexCommands.ts"
import { runCommand } from "./runCommand.ts"
import { settings } from "./settings.ts"
import { streams } from "./streamCommands.ts"
import { watch } from "./watch.ts"

const command = Command.make("effect-simba").pipe(
  Command.withDescription("Mutexes and data streams of a Redis server, for operators"),
  Command.withSubcommands([...mutexCommands, watch, runCommand, streams, doctor, bench]),
  Command.withGlobalFlags(settings)
)

const Package = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))

const versionIn = Effect.fnUntraced(function*(packageFile: URL) {
  const path = yield* Effect.flatMap(Path.Path, (paths) => paths.fromFileUrl(packageFile))
  const text = yield* Effect.flatMap(FileSystem.FileSystem, (files) => files.readFileString(path))
  return (yield* Schema.decodeEffect(Package)(text)).version
})

/** Known also where the other flags cannot be read. The words after `--` are the command of `run`. */
const asksForJson = Effect.map(
  Effect.flatMap(Stdio.Stdio, ({ args }) => args),
  (args) => args.slice(0, args.includes("--") ? args.indexOf("--") : args.length).includes("--json")
)

export const main = (packageFile: URL) =>
  Effect.flatMap(versionIn(packageFile), (version) => Command.run(command, { version })).pipe(
    Effect.tapCause((cause) =>
      Effect.flatMap(asksForJson, (isJson) => {
        const message = Cause.hasInterruptsOnly(cause) ? undefined : messageOf(Cause.squash(cause), isJson)
        return message === undefined ? Effect.void : Console.error(message)
      })
    ),
    Effect.provideService(References.MinimumLogLevel, "Error"),
    // Standard output is for answers, and a loss is told once
    Effect.provideService(Logger.LogToStderr, true)
  )
