#!/usr/bin/env node
/**
 * Command line for operators: inspects and operates the mutexes, jobs and data streams on a Redis server.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import { exitCodeOf, exitCodes } from "../internal/exitCodes.ts"
import { main } from "../internal/main.ts"

// When the terminal closes, end as on SIGTERM, so that a command under a lock ends too
process.once("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

// If the reader closes the pipe, as `head` does, exit silently, as SIGPIPE would
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") process.exit(exitCodes.readerGone)
  process.stderr.write(`effect-simba: cannot write the output: ${message}\n`)
  process.exit(exitCodes.unwritable)
})
// Ignore errors on standard error: `run` must still end its command and release the mutex
process.stderr.on("error", () => {})

NodeRuntime.runMain(Effect.provide(main(new URL("../../package.json", import.meta.url)), NodeServices.layer), {
  disableErrorReporting: true,
  // Exit only after the output is written: exiting earlier would drop what the pipe has not accepted yet
  teardown: (exit, onExit) => void process.stdout.write("", () => onExit(exitCodeOf(exit)))
})
