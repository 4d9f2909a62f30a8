/** Ends a stream lease: done, yielded, handed over, or in the dead letters. */
import type { Held, Service } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import { toEntry } from "./announcementEntry.ts"
import * as batchedRequest from "./batchedRequest.ts"
import { Natural } from "./codecs.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import { eachOf } from "./replies.ts"
import * as scripts from "./scripts.ts"
import { millis, type ServiceContext } from "./service.ts"

const readDone = reader("the reply of the done script", eachOf(["Done", "AlreadyDone", "NotOwner"]))
const readRelease = reader("the reply of the release script", eachOf(["Released", "NotOwner"]))
const readFail = reader(
  "the reply of the fail script",
  Schema.Union([Schema.Literal("NotOwner"), Schema.Tuple([Natural, Natural])])
)
const readDeadLetter = reader("the reply of the dead-letter script", Schema.Literals(["DeadLettered", "NotOwner"]))
const readFlag = reader("the reply of the script for unreadable entries", Schema.Literals(["0", "1"]))
const readHandOver = reader("the reply of the hand-over script", Schema.Literals(["HandedOver", "NotOwner"]))
const readHandOvers = reader("what was handed over", Schema.Array(StreamWire.HandOver))
const readEntries = reader("entries of the load-balancer stream", StreamWire.Entries)

type Part = Pick<
  Service,
  "deadLetter" | "deadLetterMalformed" | "done" | "fail" | "handedOver" | "handOver" | "release"
>

/** `expire` makes Redis publish the expiry of a key at once. */
export const make = (context: ServiceContext, expire: (key: string) => void): Part => {
  const { group, input, service } = context
  const failures = keys.failures(service)
  const announced = keys.announced(service)
  const deadLetters = keys.deadLetters(service)
  const channel = keys.signalChannel(service)
  const handOversKey = keys.handOvers(service)
  const parse = toEntry(context.problemWith)

  const keysOf = ({ entry, stream }: Held) =>
    [
      input,
      failures,
      announced,
      keys.entryLease(stream, entry),
      keys.streamLease(stream)
    ] as const
  const argsOf = ({ consumer, entry, epoch, stream, token }: Held) =>
    [group, stream, entry, consumer, `${consumer}@@${epoch}`, token] as const

  const manyKeysOf = (holdings: ReadonlyArray<Held>) =>
    [
      input,
      failures,
      announced,
      ...holdings.flatMap(({ entry, stream }) => [
        keys.entryLease(stream, entry),
        keys.streamLease(stream),
        keys.checkpoint(stream)
      ])
    ] as const
  const manyArgsOf = (holdings: ReadonlyArray<Held>) =>
    holdings.flatMap(({ consumer, entry, epoch, stream, token }) =>
      [stream, entry, consumer, `${consumer}@@${epoch}`, token] as const
    )

  const doneAll = context.run("done", scripts.markDone, readDone)
  const releaseAll = context.run("release", scripts.yieldLeases, readRelease)
  const release = batchedRequest.make(
    "release",
    (holdings: ReadonlyArray<Held>) => releaseAll(manyKeysOf(holdings), [group, channel, ...manyArgsOf(holdings)])
  )
  const fail = context.run("fail", scripts.recordFailure, readFail)
  const deadLetter = context.run("dead-letter", scripts.deadLetterAnnouncement, readDeadLetter)
  const deadLetterMalformed = context.run("dead-letter", scripts.deadLetterMalformed, readFlag)
  const handOver = context.run("hand over", scripts.handOverLease, readHandOver)
  const adopt = context.run("look for what was handed over", scripts.adoptHandOver, readEntries)
  const listHandOvers = context.run("look for what was handed over", scripts.listHandOvers, readHandOvers)

  return {
    done: batchedRequest.make(
      "done",
      (holdings: ReadonlyArray<Held>) => doneAll(manyKeysOf(holdings), [group, ...manyArgsOf(holdings)])
    ),
    release: (held) =>
      Effect.tap(release(held), (reply) =>
        Effect.sync(() => {
          if (reply === "Released") expire(keys.entryLease(held.stream, held.entry))
        })),
    fail: (held, { attempt, deadLetterAfter = Duration.zero, hasProgressed } = {}) =>
      Effect.map(
        fail(keysOf(held), [
          ...argsOf(held),
          attempt ?? "",
          Math.round(Duration.toMillis(deadLetterAfter)),
          hasProgressed === true ? "1" : ""
        ]),
        (reply) => reply === "NotOwner" ? reply : { count: reply[0], period: Duration.millis(reply[1]) }
      ),
    deadLetter: (held, reason) =>
      deadLetter([...keysOf(held), deadLetters, keys.checkpoint(held.stream)], [...argsOf(held), reason]),
    deadLetterMalformed: (entry, consumer, reason) =>
      Effect.map(
        context.withGroup(
          deadLetterMalformed([input, failures, announced, deadLetters], [group, entry, consumer, reason])
        ),
        (moved) => moved === "1"
      ),
    handOver: (held, to, confirm) =>
      handOver(
        [...keysOf(held), keys.fence(held.stream), handOversKey],
        [...argsOf(held), channel, to.consumer, to.session, millis(confirm)]
      ),
    handedOver: Effect.fnUntraced(function*(consumer, session) {
      const found: Array<Held & { readonly info: Readonly<Record<string, unknown>> }> = []
      for (const handOver of yield* listHandOvers([handOversKey], [consumer, session])) {
        if (handOver.consumer !== consumer || handOver.session !== session) continue
        const { entry, epoch, stream, token } = handOver
        const held: Held = { stream, entry, consumer, epoch, token }
        const [row] = yield* adopt([...keysOf(held), keys.checkpoint(stream)], argsOf(held))
        const content = row && parse(...row)
        if (content?._tag === "Announced") found.push({ ...held, info: content.info })
      }
      return found
    })
  }
}
