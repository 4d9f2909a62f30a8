/** What happens to commands when their connection is lost. The test's client only pretends to be connected. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { Redis as Client } from "ioredis"
import { EventEmitter } from "node:events"
import * as commandTimeouts from "../../src/internal/client/ioredis/commandTimeouts.ts"

it.live("commands in flight fail when the connection is lost, and later commands fail immediately", () =>
  Effect.gen(function*() {
    const client = new Client({ lazyConnect: true })
    Object.assign(client, { status: "ready", stream: new EventEmitter(), sendCommand: () => undefined })
    const send = yield* commandTimeouts.withTimeouts(client, Duration.seconds(10))
    const asked = (key: string) =>
      Effect.callback<string>((resume) => {
        send("GET", [key], (failure) => resume(Effect.succeed(`${key}: ${String(failure?.cause)}`)))
      })
    const failures = yield* Effect.forkScoped(Effect.forEach(["a", "b", "c"], asked, { concurrency: "unbounded" }), {
      startImmediately: true
    })
    client.status = "close"
    client.emit("close")
    const all = [...(yield* Fiber.join(failures)), yield* asked("d")]
    assert.strictEqual(all.length, 4)
    for (const failure of all) assert.match(failure, /connect/)
  }))
