/** How a layer subscribes on all primaries in a Cluster, tested with fake clients. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Logger } from "effect"
import type { Cluster, Redis as Client } from "ioredis"
import { EventEmitter } from "node:events"
import { afterEach, beforeEach, vi } from "vitest"
import * as clusterSubscriptions from "../../src/internal/client/ioredis/clusterSubscriptions.ts"

/** A fake connection on which subscriptions succeed immediately. */
class Hand extends EventEmitter {
  status = "ready"

  call(): Promise<unknown> {
    return Promise.resolve(1)
  }

  unsubscribe(): Promise<void> {
    return Promise.resolve()
  }

  break(): void {
    this.status = "end"
    this.emit("end")
  }
}

class Primary {
  readonly options: { readonly host: string; readonly port: number }
  /** The connections to this primary. The last one is current. */
  readonly opened: Array<Hand> = []
  /** Whether messages published through the Cluster reach this primary. */
  isReached = true

  constructor(host: string) {
    this.options = { host, port: 6379 }
  }

  hear(channel: string, text: string): void {
    this.opened.at(-1)!.emit("message", channel, text)
  }
}

const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
const turns = Effect.repeat(turn, { times: 10 })

/** Two primaries, and the messages received on one channel. `undefined` is a gap. */
const clusterOfTwo = Effect.gen(function*() {
  const primaries = [new Primary("a"), new Primary("b")] as const
  const publish = (channel: string, text: string) => {
    for (const primary of primaries) if (primary.isReached) primary.hear(channel, text)
  }
  const nodes = primaries.map((primary) =>
    Object.assign(primary, {
      call: (_command: string, channel: string, text: string) => Promise.resolve(publish(channel, text))
    })
  )
  const cluster = Object.assign(new EventEmitter(), {
    status: "ready",
    slots: [],
    nodes: () => nodes,
    refreshSlotsCache: () => undefined
  })
  const open = (node: Client) =>
    Effect.sync(() => {
      const hand = new Hand()
      ;(node as unknown as Primary).opened.push(hand)
      return hand as unknown as Client
    })
  const { listen } = yield* clusterSubscriptions.make(cluster as unknown as Cluster, open, Duration.seconds(10))
  const heard: Array<string | undefined> = []
  yield* listen("channel", (text) => heard.push(text))
  return { a: primaries[0], b: primaries[1], heard }
})

const quiet = Logger.layer([])

/** Advances the platform's timers, because connections do not use Effect's clock. */
const pass = (millis: number) => Effect.andThen(Effect.promise(() => vi.advanceTimersByTimeAsync(millis)), turns)

describe("subscriptions on a Cluster's primaries", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
  afterEach(() => void vi.useRealTimers())

  it.live("a message before a gap does not suppress the same text after the gap", () =>
    Effect.gen(function*() {
      const { a, b, heard } = yield* clusterOfTwo
      a.hear("channel", "look")
      // Primary b's copy of the message is lost
      b.opened[0]!.break()
      yield* pass(100)
      assert.deepStrictEqual([heard, b.opened.length], [["look", undefined], 2])
      b.hear("channel", "look")
      assert.deepStrictEqual(heard, ["look", undefined, "look"])
      a.hear("channel", "look")
      assert.deepStrictEqual(heard, ["look", undefined, "look"])
    }).pipe(Effect.provide(quiet)))

  it.live("a connection is replaced after two consecutive missed heartbeats but not after one", () =>
    Effect.gen(function*() {
      const { a, b, heard } = yield* clusterOfTwo
      const heartbeat = Effect.andThen(pass(3000), pass(1000))
      for (const isReached of [true, false, true, false]) {
        b.isReached = isReached
        yield* heartbeat
      }
      assert.deepStrictEqual([a.opened.length, b.opened.length, heard], [1, 1, []])
      yield* heartbeat
      assert.deepStrictEqual([a.opened.length, b.opened.length], [1, 2])
      yield* turns
      assert.deepStrictEqual(heard, [undefined])
    }).pipe(Effect.provide(quiet)))
})
