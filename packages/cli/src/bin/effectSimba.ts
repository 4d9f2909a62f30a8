#!/usr/bin/env node
/**
 * Command line for operators: inspects and operates the mutexes, jobs and data streams on a Redis server.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import { exitCodeOf, exitCodes } from "../internal/exitCodes.ts"
import { main } from "../internal/main.ts"

// Closing the terminal ends the program gracefully, like a signal: a command under a lock must end, too
process.once("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

// A reader that closes the pipe, such as `head`, ends the program silently, as SIGPIPE would
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") process.exit(exitCodes.readerGone)
  process.stderr.write(`effect-simba: cannot write the output: ${message}\n`)
  process.exit(exitCodes.unwritable)
})
// Even if nobody reads standard error, `run` must end its command and release the mutex
process.stderr.on("error", () => {})

NodeRuntime.runMain(Effect.provide(main(new URL("../../package.json", import.meta.url)), NodeServices.layer), {
  disableErrorReporting: true,
  // Exit only when written: the end of the process would drop output that the pipe has not taken
  teardown: (exit, onExit) => void process.stdout.write("", () => onExit(exitCodeOf(exit)))
})
