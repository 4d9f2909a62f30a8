#!/usr/bin/env node
/**
 * Command line for operators: inspects and operates the mutexes, jobs and data streams on a Redis server.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import { exitCodeOf } from "../internal/exitCodes.ts"
import { main } from "../internal/main.ts"

// A terminal that closes ends the program gracefully, as a signal does: a command under a lock must end, too
process.once("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

NodeRuntime.runMain(Effect.provide(main(new URL("../../package.json", import.meta.url)), NodeServices.layer), {
  disableErrorReporting: true,
  teardown: (exit, onExit) => onExit(exitCodeOf(exit))
})
