#!/usr/bin/env node
/**
 * Command line of `FakeRedisServer`: prints the address as its first line, and serves until a signal.
 */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stdio from "effect/Stdio"
import * as FakeNetwork from "../FakeNetwork.ts"
import * as FakeRedis from "../FakeRedis.ts"
import * as FakeRedisServer from "../FakeRedisServer.ts"
import { help, parse, type Settings, UsageError } from "../internal/socket/arguments.ts"

const serve = ({ address, faults, seed }: Settings) =>
  Effect.gen(function*() {
    const { url } = yield* FakeRedisServer.listen(address)
    const link = yield* FakeNetwork.link("socket")
    yield* link.set(faults)
    yield* Console.log(url)
    return yield* Effect.never
  }).pipe(
    Effect.scoped,
    // Nobody looks at the trace, and no replica takes over
    Effect.provide(FakeRedis.layer({ seed, trace: 0, undoDepth: 0 }))
  )

const main = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const settings = yield* parse(yield* stdio.args)
  return yield* settings === "help" ? Console.log(help) : serve(settings)
}).pipe(
  Effect.tapError((error) =>
    Console.error(error instanceof UsageError ? `${error.message}\n\n${help}` : `cannot listen: ${String(error.cause)}`)
  )
)

NodeRuntime.runMain(Effect.provide(main, NodeStdio.layer), {
  disableErrorReporting: true,
  // A signal is how a server is meant to end
  teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Exit.hasInterrupts(exit) ? 0 : 1)
})
