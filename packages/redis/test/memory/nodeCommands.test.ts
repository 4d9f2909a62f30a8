/** Commands to all primaries in a Cluster, tested with fake clients that have only a status. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Exit } from "effect"
import type { Cluster } from "ioredis"
import { EventEmitter } from "node:events"
import { primaries } from "../../src/internal/client/ioredis/commands.ts"

const onePrimary = (status: string) => {
  const sent: Array<string> = []
  const call = (command: string) => {
    sent.push(command)
    return Promise.resolve("OK")
  }
  const client = Object.assign(new EventEmitter(), { call, options: { host: "127.0.0.1", port: 7000 }, status })
  const slots: Array<Array<string>> = []
  slots[5] = ["127.0.0.1:7000"]
  return { client, cluster: { nodes: () => [client], slots } as unknown as Cluster, sent }
}

it.live("slots without a node are not mistaken for a primary that is down", () =>
  Effect.gen(function*() {
    const { cluster, sent } = onePrimary("ready")
    const sends = yield* primaries(cluster, Duration.seconds(1))
    yield* Effect.forEach(sends, (send) => send("DBSIZE"))
    assert.deepStrictEqual(sent, ["DBSIZE"])
  }))

it.live("a command is not sent later if it times out before its primary is connected", () =>
  Effect.gen(function*() {
    const { client, cluster, sent } = onePrimary("connecting")
    const [send] = yield* primaries(cluster, Duration.millis(50))
    assert.isTrue(Exit.isFailure(yield* Effect.exit(send!("FLUSHALL"))))
    client.emit("ready")
    yield* Effect.yieldNow
    assert.deepStrictEqual(sent, [])
  }))
