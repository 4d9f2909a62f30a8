/** What happens to commands when their connection is lost or silent. Most clients only pretend to be connected. */
import { IoRedis } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { type Cluster, type Command, Redis as Client } from "ioredis"
import { EventEmitter } from "node:events"
import type { Args } from "../../src/internal/client/commandSink.ts"
import * as commandTimeouts from "../../src/internal/client/ioredis/commandTimeouts.ts"
import { quiet } from "../support/harness.ts"
import { refusingServer } from "../support/refusingServer.ts"

it.live("in-flight commands fail when the connection is lost, and later commands fail immediately", () =>
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

it.live("a connection is destroyed only after twice the timeout without data", () =>
  Effect.gen(function*() {
    const limit = 40
    let destroyedAt: number | undefined
    const destroy = () => {
      destroyedAt = performance.now()
    }
    const client = new Client({ lazyConnect: true })
    const stream = Object.assign(new EventEmitter(), { destroy })
    Object.assign(client, { status: "ready", stream, sendCommand: () => client.commandQueue.push({} as never) })
    const send = yield* commandTimeouts.withTimeouts(client, Duration.millis(limit))
    const timesOut = Effect.callback<void>((resume) => void send("GET", ["key"], () => resume(Effect.void)))
    const first = yield* Effect.forkChild(timesOut, { startImmediately: true })
    yield* Effect.sleep(Duration.millis(limit * 3 / 4))
    const heardAt = performance.now()
    // The reply to an earlier command
    stream.emit("data")
    yield* Fiber.join(first)
    while (destroyedAt === undefined) yield* timesOut
    assert.isAtLeast(destroyedAt - heardAt, 2 * limit - 1)
  }))

it.live("a silent connection stays open if its client never reconnects", () =>
  Effect.gen(function*() {
    const server = yield* refusingServer
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => new Client(server.url, { retryStrategy: () => null }).on("error", () => undefined)),
      (client) => Effect.sync(() => client.disconnect())
    )
    const layer = IoRedis.layerClient(client, { commandTimeout: "100 millis", serverChecks: false })
    const { send } = Context.get(yield* Layer.build(layer), Redis)
    server.isSilent = true
    for (let i = 0; i < 4; i++) assert.match(String((yield* Effect.flip(send("PING"))).cause), /within 100ms/)
    assert.strictEqual(client.status, "ready")
  }).pipe(Effect.scoped, Effect.provide(quiet)))

it.live("the connection to a Cluster node is destroyed if nothing arrives, but not if replies are merely late", () =>
  Effect.gen(function*() {
    const limit = 20
    let destroyed = 0
    const stream = { bytesRead: 0, destroy: () => destroyed++ }
    const commandQueue: Array<{ readonly command: object }> = []
    const node = { commandQueue: { peekFront: () => commandQueue[0] }, status: "ready", stream }
    const cluster = {
      nodes: () => [node, { commandQueue: { peekFront: () => undefined } }],
      sendCommand: (command: object) => commandQueue.push({ command }),
      status: "ready"
    }
    const send = yield* commandTimeouts.withTimeouts(cluster as unknown as Cluster, Duration.millis(limit))
    const timesOut = Effect.callback<void>((resume) => {
      send("GET", ["key"], (failure) => resume(failure === undefined ? Effect.die("a reply") : Effect.void))
    })
    for (let i = 0; i < 5; i++) {
      yield* timesOut
      stream.bytesRead++
    }
    assert.strictEqual(destroyed, 0)
    yield* timesOut
    yield* timesOut
    assert.strictEqual(destroyed, 1)
    // An application command may take a long time
    commandQueue.unshift({ command: {} })
    yield* timesOut
    yield* timesOut
    yield* timesOut
    assert.strictEqual(destroyed, 1)
    // A node whose process hangs accepts connections but does not reply to the handshake
    stream.bytesRead++
    node.status = "connect"
    const begun = performance.now()
    while (destroyed === 1) yield* timesOut
    // One timeout until the silence is noticed, and twice the timeout after that
    assert.isAtLeast(performance.now() - begun, 3 * limit - 1)
  }))

it.live("a command with repeated arguments is encoded only once, and like any other", () =>
  Effect.gen(function*() {
    const client = new Client({ lazyConnect: true })
    const sent: Array<Command> = []
    Object.assign(client, {
      status: "ready",
      stream: new EventEmitter(),
      sendCommand: (command: Command) => sent.push(command)
    })
    const send = yield* commandTimeouts.withTimeouts(client, Duration.seconds(10))
    const written = (args: Args) => {
      send("EVALSHA", args, () => undefined)
      return Buffer.from(sent.at(-1)!.toWritable(client.stream))
    }
    for (const text of ["ascii", "größer", ""]) {
      let calls = 0
      const list = ["sha", "1", text]
      const repeated = () => {
        calls++
        return list
      }
      for (let i = 0; i < 3; i++) assert.deepStrictEqual(written(repeated), written(list))
      assert.strictEqual(calls, 1)
    }
    client.emit("close")
    // ioredis may resend them
    for (const command of sent) {
      assert.strictEqual(command.toWritable(client.stream).toString(), "*1\r\n$4\r\nping\r\n")
    }
  }))
