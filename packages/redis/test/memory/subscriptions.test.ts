/** How a layer subscribes over one connection, tested with a fake client. */
import { assert, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, References } from "effect"
import type { Redis as Client } from "ioredis"
import { EventEmitter } from "node:events"
import * as subscriptions from "../../src/internal/client/ioredis/subscriptions.ts"

/** A fake connection that replies only when the test calls `reply`. */
class Hand extends EventEmitter {
  status = "ready"
  readonly asked: Array<string> = []
  private readonly replies: Array<() => void> = []

  call(command: string, ...channels: ReadonlyArray<string>): Promise<unknown> {
    this.asked.push([command, ...channels].join(" "))
    return new Promise((resolve) => this.replies.push(() => resolve(1)))
  }

  unsubscribe(): Promise<void> {
    return Promise.resolve()
  }

  reply(): void {
    this.replies.splice(0).forEach((reply) => reply())
  }

  break(): void {
    this.status = "end"
    this.emit("end")
  }
}

const silent = { lost: () => undefined, back: () => undefined } as unknown as Parameters<typeof subscriptions.make>[2]

it.live("after a connection breaks, the gap is reported only once the new connection has subscribed", () =>
  Effect.gen(function*() {
    const [first, second] = [new Hand(), new Hand()]
    const opened = yield* Deferred.make<void>()
    const open = Effect.suspend(() => {
      if (first.status === "ready") return Effect.succeed(first as unknown as Client)
      return Effect.as(Deferred.succeed(opened, undefined), second as unknown as Client)
    })
    const { listen } = yield* subscriptions.make(open, Duration.seconds(10), silent)
    const heard: Array<string | undefined> = []
    const gap = yield* Deferred.make<void>()
    const listening = yield* Effect.forkScoped(
      listen("channel", (message) => {
        heard.push(message)
        if (message === undefined) Deferred.doneUnsafe(gap, Effect.void)
      }),
      { startImmediately: true }
    )
    while (first.asked.length === 0) yield* Effect.yieldNow
    first.reply()
    yield* Fiber.join(listening)
    first.break()
    yield* Deferred.await(opened)
    while (second.asked.length === 0) yield* Effect.yieldNow
    yield* Effect.repeat(Effect.yieldNow, { times: 20 })
    assert.deepStrictEqual([second.asked, heard], [["subscribe channel"], []])
    second.reply()
    yield* Deferred.await(gap)
    second.emit("message", "channel", "text")
    assert.deepStrictEqual(heard, [undefined, "text"])
  }))

it.live("concurrent listeners share one connection, no matter where the scheduler makes them yield", () =>
  Effect.gen(function*() {
    const several: Array<number> = []
    for (let before = 0; before < 40; before++) {
      const clients: Array<Hand> = []
      const open = Effect.sync(() => {
        const client = new Hand()
        clients.push(client)
        return client as unknown as Client
      })
      const { listen } = yield* subscriptions.make(open, Duration.seconds(10), silent)
      const listening = yield* Effect.forEach(["a", "b"], (channel) =>
        Effect.forkScoped(
          Effect.provideService(
            Effect.andThen(
              Effect.forEach(Array.from({ length: before }), () => Effect.void),
              listen(channel, () => undefined)
            ),
            References.MaxOpsBeforeYield,
            40
          ),
          { startImmediately: true }
        ))
      for (let i = 0; i < 50 && listening.some((fiber) => fiber.pollUnsafe() === undefined); i++) {
        for (const client of clients) client.reply()
        yield* Effect.yieldNow
      }
      if (clients.length !== 1) several.push(before)
    }
    assert.deepStrictEqual(several, [])
  }).pipe(Effect.scoped))
