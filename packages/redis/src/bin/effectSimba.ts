#!/usr/bin/env node
/**
 * Command line for operators: mutexes and data streams of a Redis server.
 */
import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { exitCodeOf } from "../internal/cli/exitCodes.ts"
import { main } from "../internal/cli/main.ts"

const platform = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer))
)

// A terminal that closes ends the program in order, as a signal does: a command under a lock has to end, too
process.once("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

NodeRuntime.runMain(Effect.provide(main(new URL("../../package.json", import.meta.url)), platform), {
  disableErrorReporting: true,
  teardown: (exit, onExit) => onExit(exitCodeOf(exit))
})
