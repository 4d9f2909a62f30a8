/** A server that is unavailable: the exit code distinguishes it from a busy mutex. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { quiet, RedisServer } from "../../../redis/test/support/harness.ts"
import * as commandLine from "../support/commandLine.ts"

it.live("`run --timeout` on a full server ends with the code of an outage", () =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start({ args: ["--maxmemory", "1", "--maxmemory-policy", "noeviction"] })
    const run = yield* commandLine.run(["run", "full", "--timeout", "2s", "--", "true"], server)
    assert.strictEqual(run.code, 69, run.errors)
    assert.include(run.errors, "OOM")
  }).pipe(Effect.provide(quiet)))
