/** Which connections are dropped when an application's client reaches another server. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { Redis as Client } from "ioredis"
import { EventEmitter } from "node:events"
import * as failover from "../../src/internal/client/ioredis/failover.ts"

/** A fake client, connected to the server with this id. */
class Connected extends EventEmitter {
  readonly status = "ready"
  server = "old"
  drops = 0

  info(): Promise<string> {
    return Promise.resolve(`run_id:${this.server}\r\n`)
  }

  disconnect(): void {
    this.drops++
  }
}

const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

it.live("a connection that was opened after the loss is not dropped, even if further attempts to reconnect failed", () =>
  Effect.gen(function*() {
    const { follow, followServer } = yield* failover.watch({
      client: {},
      commandTimeout: Duration.seconds(1),
      connectTimeout: Duration.seconds(1)
    })
    const opened = Effect.suspend(() => {
      const connection = new Connected()
      return Effect.as(follow(Effect.succeed(connection as unknown as Client)), connection)
    })
    const client = new Connected()
    yield* followServer(client as unknown as Client)
    yield* turn
    const before = yield* opened
    client.emit("close")
    const after = yield* opened
    client.emit("close")
    client.server = "next"
    client.emit("ready")
    yield* turn
    assert.deepStrictEqual([before.drops, after.drops], [1, 0])
    client.emit("close")
    client.server = "last"
    client.emit("ready")
    yield* turn
    assert.deepStrictEqual([before.drops, after.drops], [2, 1])
  }).pipe(Effect.scoped))
