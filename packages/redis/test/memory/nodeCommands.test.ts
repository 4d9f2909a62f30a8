/** Commands to all primaries of a Cluster, with clients that are not connected. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { Cluster } from "ioredis"
import { primaries } from "../../src/internal/client/ioredis/commands.ts"

it.live("slots without a node do not count as a primary that is down", () =>
  Effect.gen(function*() {
    const sent: Array<string> = []
    const call = (command: string) => {
      sent.push(command)
      return Promise.resolve("OK")
    }
    const client = { call, options: { host: "127.0.0.1", port: 7000 } }
    const slots: Array<Array<string>> = []
    slots[5] = ["127.0.0.1:7000"]
    const sends = yield* primaries({ nodes: () => [client], slots } as unknown as Cluster, Duration.seconds(1))
    yield* Effect.forEach(sends, (send) => send("DBSIZE"))
    assert.deepStrictEqual(sent, ["DBSIZE"])
  }))
