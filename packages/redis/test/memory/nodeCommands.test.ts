/** Commands to the nodes of a Cluster, with clients that only say in which state they are. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Exit } from "effect"
import type { Cluster, Redis as Client } from "ioredis"
import { EventEmitter } from "node:events"
import { node, primaries } from "../../src/internal/client/ioredis/commands.ts"

const limit = Duration.millis(50)

const clientOf = (status: string) => {
  const sent: Array<string> = []
  const call = (command: string) => {
    sent.push(command)
    return Promise.resolve("OK")
  }
  const options = { host: "127.0.0.1", port: 7000 }
  return { sent, client: Object.assign(new EventEmitter(), { call, options, status }) as unknown as Client }
}

it.live("a command that times out before its node is connected is not sent later", () =>
  Effect.gen(function*() {
    const { client, sent } = clientOf("connecting")
    assert.isTrue(Exit.isFailure(yield* Effect.exit(node(client, limit)("FLUSHALL"))))
    client.emit("ready")
    yield* Effect.yieldNow
    assert.deepStrictEqual(sent, [])
  }))

it.live("slots without a node do not count as a primary that is down", () =>
  Effect.gen(function*() {
    const { client, sent } = clientOf("ready")
    const slots: Array<Array<string>> = []
    slots[5] = ["127.0.0.1:7000"]
    const sends = yield* primaries({ nodes: () => [client], slots } as unknown as Cluster, limit)
    yield* Effect.forEach(sends, (send) => send("DBSIZE"))
    assert.deepStrictEqual(sent, ["DBSIZE"])
  }))
