/** Grant messages and confirmations that the scripts send on a real server. */
import { FencingToken } from "@effect-simba/core/FencingToken"
import { type AcquireResult, type ConfirmRequest, type MutexStore, release } from "@effect-simba/core/MutexStore"
import type { BackendError, ProtocolError } from "@effect-simba/core/SimbaError"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect } from "effect"
import {
  contender,
  freshId,
  freshMutex,
  granted,
  keysOf,
  messagesOn,
  ownerOf,
  RedisServer,
  refused,
  until
} from "../../support/harness.ts"

const lease = Duration.seconds(60)

const confirmed = (store: MutexStore["Service"], request: Omit<ConfirmRequest, "lease">) =>
  Effect.callback<AcquireResult, BackendError | ProtocolError>((resume) => store.confirm({ ...request, lease }, resume))

layer(RedisServer.layer, { excludeTestServices: true })("grants by message", (it) => {
  /** Makes `b` wait, then grants it the mutex through `a`'s release. */
  const handOver = Effect.fnUntraced(function*(label: string) {
    const { a, b, m, server, store } = yield* freshMutex(label)
    yield* a.own
    const wakeUps = yield* b.subscribe
    const { stamp } = yield* b.wait
    yield* a.release
    const wakeUp = yield* wakeUps.next
    const grant = wakeUp._tag === "YourTurn" ? wakeUp.grant : undefined
    return { server, store, m, a, b, stamp: stamp!, grant: grant! }
  })

  it.effect("a message contains the grant's token, duration and time, which is later than the time in the previous reply", () =>
    Effect.gen(function*() {
      const { grant, m, stamp, store } = yield* handOver("grant message")
      assert.strictEqual(grant.token, (yield* store.inspect(m, 0)).token)
      assert.strictEqual(grant.millis, Duration.toMillis(lease))
      assert.isBelow(stamp.token, grant.token)
      assert.isAbove(grant.micros, stamp.micros)
      assert.isBelow(grant.micros - stamp.micros, 5_000_000)
    }))

  it.effect("after a grant, every reply to other contenders contains its token, even the reply to a release", () =>
    Effect.gen(function*() {
      const { a, b, grant, m, store } = yield* handOver("grant stamp")
      const repeated = contender(store, m)
      assert.strictEqual((yield* repeated.wait).stamp!.token, grant.token)
      const requeue = { id: freshId(), lease }
      const { requeued } = yield* release(store, { mutex: m, id: a.id, confirm: Duration.seconds(30), lease, requeue })
      assert.strictEqual(requeued!.stamp!.token, grant.token)
      assert.isAbove(requeued!.stamp!.micros, grant.micros)
      assert.strictEqual(ownerOf(yield* store.owner(m)), b.id)
    }))

  it.effect("a confirmation extends its grant to a full lease", () =>
    Effect.gen(function*() {
      const { b, grant, m, server, store } = yield* handOver("confirmed")
      for (let i = 0; i < 2; i++) {
        yield* server.send("PEXPIRE", keysOf(m).owner, "20000")
        const result = yield* confirmed(store, { mutex: m, id: b.id, token: grant.token })
        assert.strictEqual(granted(result).token, grant.token)
        assert.isAbove(Number(yield* server.send("PTTL", keysOf(m).owner)), 50_000)
      }
      assert.strictEqual(yield* server.send("GET", keysOf(m).fence), String(grant.token))
    }))

  it.effect("a confirmation neither affects another grant nor creates one", () =>
    Effect.gen(function*() {
      const { b, grant, m, server, store } = yield* handOver("not confirmed")
      const { owner } = keysOf(m)
      yield* server.send("PEXPIRE", owner, "20000")
      const attempts = [
        { id: b.id, token: FencingToken.make(grant.token - 1) },
        { id: b.id, token: FencingToken.make(grant.token + 1) },
        { id: freshId(), token: grant.token }
      ]
      for (const attempt of attempts) {
        const { ownership } = refused(yield* confirmed(store, { ...attempt, mutex: m }))
        assert.strictEqual(ownerOf(ownership), b.id)
      }
      assert.isBelow(Number(yield* server.send("PTTL", owner)), 20_001)
      yield* server.send("DEL", owner)
      const { ownership } = refused(yield* confirmed(store, { mutex: m, id: b.id, token: grant.token }))
      assert.deepStrictEqual(ownership, { _tag: "Free" })
      assert.strictEqual(yield* server.send("EXISTS", owner), 0)
    }))

  it.effect("a grant is announced once, at the time of the grant", () =>
    Effect.gen(function*() {
      const { a, b, m, server, store } = yield* freshMutex("announced")
      const channel = `simba:{${m}}`
      const messages = yield* messagesOn(server, channel)
      yield* a.own
      yield* a.own
      yield* b.subscribe
      yield* b.wait
      yield* a.release
      const { token } = yield* store.inspect(m, 0)
      yield* confirmed(store, { mutex: m, id: b.id, token: token! })
      yield* b.confirm
      yield* server.send("PUBLISH", channel, "the end")
      yield* until("all messages", Effect.sync(() => messages.at(-1)?.[1] === "the end"))
      assert.deepStrictEqual(
        messages.map(([, text]) => text),
        [`acquired@@${a.id}`, `acquired@@${b.id}`, "the end"]
      )
    }))
})
