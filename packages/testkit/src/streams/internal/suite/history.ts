/**
 * Runs random histories with a few consumers and data streams, and compares the store with a model of who owns what.
 */
import { EntryId, type StreamName } from "@effect-simba/core/streams/StreamName"
import type { Ownership } from "@effect-simba/core/streams/StreamStore"
import { assert } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type Bench, committed, failed, only, type Party } from "./bench.ts"

const Stream = Schema.Literals(["x", "y"])
const Member = Schema.Literals([0, 1, 2])
/** `owner` is the member that last took the data stream. */
const at = { stream: Stream, member: Schema.Literals([0, 1, 2, "owner"]) }

/**
 * The commands in random histories. One third make a member an owner, and another third are requests by owners, because
 * most other commands have no effect without an owner. `Own` announces, reads and takes a data stream.
 */
export const Command = Schema.Union([
  Schema.TaggedUnion({ Own: { stream: Stream, member: Member } }),
  Schema.TaggedUnion({
    Repeat: at,
    Renew: at,
    Done: at,
    Release: at,
    Fail: at,
    Commit: { ...at, id: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 })) },
    HandOver: { ...at, to: Member },
    DeadLetter: at
  }),
  Schema.TaggedUnion({
    Announce: { stream: Stream },
    Read: { member: Member },
    Take: at,
    RemoveOld: {},
    Pass: { share: Schema.Literals([0.3, 0.6, 1.2]) }
  })
])

export type Command = typeof Command.Type

type Step = Exclude<Command, { readonly _tag: "Own" }>

interface Model {
  entry: EntryId | undefined
  isDelivered: boolean
  /** Whether the data stream was announced again after `entry`. */
  isRepeated: boolean
  /** The last grant, and when its lease ends. */
  owner: { ownership: Ownership; until: number } | undefined
  token: number
  /** The party that was last granted the data stream. */
  latest: Party | undefined
  failures: number
  checkpoint: number
  /** Each party's last grant, even if it has ended. */
  readonly had: Map<Party, Ownership>
}

const lease = Duration.seconds(2)

export const runHistory = Effect.fnUntraced(function*(
  bench: Bench,
  commands: ReadonlyArray<Command>,
  options: { readonly live: boolean }
) {
  const { service } = bench
  const parties = [bench.party(), bench.party(), bench.party()]
  const period = options.live ? bench.lease : lease
  const models = new Map<string, Model>(
    Stream.literals.map((label) => [label, {
      entry: undefined,
      isDelivered: false,
      isRepeated: false,
      owner: undefined,
      token: 0,
      latest: undefined,
      failures: 0,
      checkpoint: 0,
      had: new Map()
    }])
  )
  let deadLettered = 0

  const read = (party: Party) => bench.during(party.read(10, Duration.millis(1)), Duration.millis(5))

  /** Whether this is the owner's lease and it has not expired. The last millisecond still belongs to a lease. */
  const owns = (model: Model, ownership: Ownership | undefined, now: number): ownership is Ownership =>
    ownership !== undefined && model.owner?.ownership === ownership && now <= model.owner.until

  const isFree = (model: Model, now: number) => model.owner === undefined || now > model.owner.until

  const grant = (model: Model, party: Party, ownership: Ownership, now: number) => {
    assert.isAbove(ownership.token, model.token, "tokens grow")
    model.token = ownership.token
    model.latest = party
    model.owner = { ownership, until: now + Duration.toMillis(period) }
    model.had.set(party, ownership)
  }

  const forget = (model: Model) => {
    model.entry = undefined
    model.isDelivered = false
    model.isRepeated = false
    model.owner = undefined
    model.failures = 0
  }

  /**
   * Finishes a data stream. Because there are no messages, a repeated announcement remains only if there is no
   * checkpoint.
   */
  const finish = Effect.fnUntraced(function*(model: Model, stream: StreamName) {
    const isRepeated = model.isRepeated && model.checkpoint === 0
    forget(model)
    const found = Option.map(yield* service.find(stream), ({ entry }) => entry)
    assert.strictEqual(Option.isSome(found), isRepeated)
    model.entry = Option.getOrUndefined(found)
  })

  const stepsOf = (command: Command): ReadonlyArray<Step> => {
    if (command._tag !== "Own") return [command]
    const { member, stream } = command
    const announce = models.get(stream)!.entry === undefined ? [{ _tag: "Announce", stream } as const] : []
    return [...announce, { _tag: "Read", member }, { _tag: "Take", stream, member }]
  }

  const step = Effect.fnUntraced(function*(command: Step) {
    const now = options.live ? 0 : yield* Clock.currentTimeMillis
    switch (command._tag) {
      case "Pass":
        return options.live ? undefined : yield* bench.pass(Duration.times(period, command.share))
      case "RemoveOld":
        assert.strictEqual((yield* service.reap(Duration.days(1))).entries, 0)
        return
      case "Read": {
        for (const content of yield* read(parties[command.member]!)) {
          const model = [...models.values()].find(({ entry }) => entry === content.entry)
          assert.isFalse(model?.isDelivered, "each new entry is delivered once")
          model!.isDelivered = true
        }
        return
      }
      case "Announce": {
        const model = models.get(command.stream)!
        const stream = bench.stream(command.stream)
        const { entry, isNew } = only(yield* service.announce([{ stream, info: {} }]))
        assert.strictEqual(isNew, model.entry === undefined)
        if (!isNew) assert.strictEqual(entry, model.entry)
        model.isRepeated = !isNew
        model.entry = entry
        return
      }
    }
    const model = models.get(command.stream)!
    const stream = bench.stream(command.stream)
    const party = command.member === "owner" ? model.latest ?? parties[0]! : parties[command.member]!
    const ownership = model.had.get(party)
    const isOwner = owns(model, ownership, now)
    if (command._tag === "Take") {
      const entry = model.entry ?? EntryId.make("1-1")
      const { epoch, result } = yield* party.ask(stream, entry, { lease: period, maxFailures: 1000 })
      if (model.entry === undefined) assert.strictEqual(result._tag, "Gone")
      else if (!isFree(model, now)) assert.strictEqual(result._tag, "Occupied")
      else if (!model.isDelivered) assert.strictEqual(result._tag, "Undelivered")
      else {
        if (model.owner !== undefined) model.failures++
        assert.deepInclude<object>(result, { _tag: "Taken", failures: model.failures })
        if (result._tag === "Taken") {
          grant(model, party, { stream, entry, consumer: party.consumer, epoch, token: result.token }, now)
        }
      }
      return
    }
    if (ownership === undefined) return
    switch (command._tag) {
      case "Repeat": {
        // Repeat only requests that may still be in flight
        if (!isOwner) return
        const { result } = yield* party.ask(stream, ownership.entry, { lease: period, epoch: ownership.epoch })
        assert.deepStrictEqual(result, { _tag: "Taken", token: ownership.token, failures: model.failures })
        model.owner!.until = now + Duration.toMillis(period)
        return
      }
      case "Renew": {
        const { _tag } = yield* bench.renew(ownership, period)
        assert.strictEqual(_tag, isOwner ? "Renewed" : "Lost")
        if (isOwner) model.owner!.until = now + Duration.toMillis(period)
        return
      }
      case "Done": {
        const isThere = model.entry === ownership.entry
        assert.strictEqual(yield* service.done(ownership), isOwner ? "Done" : isThere ? "NotOwner" : "AlreadyDone")
        if (isOwner) yield* finish(model, stream)
        return
      }
      case "Release":
        assert.strictEqual(yield* service.release(ownership), isOwner ? "Released" : "NotOwner")
        if (isOwner) model.owner = undefined
        return
      case "Fail":
        assert.strictEqual(yield* failed(service, ownership), isOwner ? ++model.failures : "NotOwner")
        return
      case "DeadLetter":
        assert.strictEqual(yield* service.deadLetter(ownership, "test"), isOwner ? "DeadLettered" : "NotOwner")
        if (isOwner) {
          deadLettered++
          forget(model)
        }
        return
      case "Commit": {
        const isAhead = command.id > model.checkpoint
        const id = EntryId.make(`${command.id}-0`)
        const expected = isOwner ? isAhead ? "Committed" : "Behind" : "NotOwner"
        assert.strictEqual(yield* service.commit(ownership, id), expected)
        if (expected === "Committed") {
          model.checkpoint = command.id
          model.failures = 0
        }
        return
      }
      case "HandOver": {
        const to = parties[command.to]!
        assert.strictEqual(yield* service.handOver(ownership, to, period), isOwner ? "HandedOver" : "NotOwner")
        if (!isOwner) return
        const handedOver = (yield* service.handedOver(to.consumer, to.session)).find((handedOver) =>
          handedOver.stream === stream
        )!
        const { info: _, ...next } = handedOver
        grant(model, to, next, now)
        return
      }
    }
  })

  for (const command of commands) {
    for (const one of stepsOf(command)) yield* step(one)
    for (const [label, model] of models) {
      const checkpoint = Option.getOrElse(yield* committed(service, bench.stream(label)), () => "0-0")
      assert.strictEqual(checkpoint, `${model.checkpoint}-0`)
    }
  }

  // Check that nothing is forgotten: another party must be able to finish all unfinished streams
  if (!options.live) yield* bench.pass(Duration.times(period, 2))
  yield* read(parties[0]!)
  for (const [label, model] of models) {
    if (model.entry === undefined) continue
    const owner = options.live ? model.owner?.ownership : undefined
    const ownership = owner ?? (yield* parties[0]!.take(bench.stream(label), model.entry, { maxFailures: 1000 }))
    assert.strictEqual(yield* service.done(ownership), "Done")
    yield* finish(model, ownership.stream)
    if (model.entry === undefined) continue
    yield* read(parties[0]!)
    yield* service.done(yield* parties[0]!.take(ownership.stream, model.entry))
  }
  assert.deepInclude(yield* service.inspect, { announced: 0, pending: 0, deadLetters: deadLettered })
})
