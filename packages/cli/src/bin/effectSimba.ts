#!/usr/bin/env node
/**
 * Command line for operators: inspects and operates the mutexes, jobs and data streams on a Redis server.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import { exitCodeOf, exitCodes } from "../internal/exitCodes.ts"
import { main } from "../internal/main.ts"

// A terminal that closes ends the program gracefully, as a signal does: a command under a lock must end, too
process.once("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

// A reader that leaves, such as `head`, ends the program silently, as SIGPIPE ends others
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") process.exit(exitCodes.readerGone)
  process.stderr.write(`effect-simba: cannot write the output: ${message}\n`)
  process.exit(exitCodes.unwritable)
})
// Without a reader of errors, `run` still has to end its command and to release the mutex
process.stderr.on("error", () => {})

NodeRuntime.runMain(Effect.provide(main(new URL("../../package.json", import.meta.url)), NodeServices.layer), {
  disableErrorReporting: true,
  // The end of the process drops what a pipe has not taken yet
  teardown: (exit, onExit) => void process.stdout.write("", () => onExit(exitCodeOf(exit)))
})
