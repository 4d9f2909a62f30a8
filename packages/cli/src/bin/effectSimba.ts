#!/usr/bin/env node
/** Command line for operators: inspects and manages the mutexes, jobs and data streams on a Redis server. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import { exitCodeOf, exitCodes } from "../internal/exitCodes.ts"
import { main } from "../internal/main.ts"

// When the terminal closes, shut down as on SIGTERM. This also ends the command that `run` started. Both the shell and
// the terminal may send this signal.
process.on("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

// If the reader closes the pipe, as `head` does, exit silently, as if killed by SIGPIPE
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") process.exit(exitCodes.readerGone)
  process.stderr.write(`effect-simba: cannot write the output: ${message}\n`)
  process.exit(exitCodes.unwritable)
})
// Ignore failed writes to standard error: `run` must still end its command and release the mutex
process.stderr.on("error", () => {})

NodeRuntime.runMain(Effect.provide(main(new URL("../../package.json", import.meta.url)), NodeServices.layer), {
  disableErrorReporting: true,
  // Exit only after all output has been written. Otherwise, anything that the pipe has not yet accepted would be lost.
  teardown: (exit, onExit) => void process.stdout.write("", () => onExit(exitCodeOf(exit)))
})
