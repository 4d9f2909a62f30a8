/** The ends of a holding: done, given back, handed over, or in the dead letters. */
import type { Held, Service } from "@effect-simba/core/streams/StreamStore"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import { toEntry } from "./announcementEntry.ts"
import * as StreamKeys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import * as scripts from "./scripts.ts"
import { type Backend, millis } from "./service.ts"

const readDone = reader("the reply of the done script", Schema.Literals(["Done", "AlreadyDone", "NotOwner"]))
const readRelease = reader("the reply of the release script", Schema.Literals(["Released", "NotOwner"]))
const readFail = reader(
  "the reply of the fail script",
  Schema.Union([Schema.Literal("NotOwner"), Schema.String.check(Schema.isPattern(/^\d{1,15}$/))])
)
const readBury = reader("the reply of the bury script", Schema.Literals(["Buried", "NotOwner"]))
const readFlag = reader("the reply of the script for unreadable entries", Schema.Literals(["0", "1"]))
const readHandOver = reader("the reply of the hand-over script", Schema.Literals(["HandedOver", "NotOwner"]))
const readGiven = reader("what was handed over", Schema.Array(StreamWire.HintMessage))
const readEntries = reader("entries of the load-balancer stream", StreamWire.Entries)

type Part = Pick<
  Service,
  "deadLetter" | "deadLetterMalformed" | "done" | "fail" | "handedOver" | "handOver" | "release"
>

/** `expire` sees to it that the expiry of a key is noticed. */
export const make = (backend: Backend, expire: (key: string) => void): Part => {
  const { group, input, service } = backend
  const failures = StreamKeys.failures(service)
  const announced = StreamKeys.announced(service)
  const deadLetters = StreamKeys.deadLetters(service)
  const channel = StreamKeys.hintChannel(service)
  const givenKey = StreamKeys.given(service)
  const parse = toEntry(backend.refuse)

  const keysOf = ({ entry, stream }: Held) =>
    [
      input,
      failures,
      announced,
      StreamKeys.entryLease(stream, entry),
      StreamKeys.streamLease(stream)
    ] as const
  const argsOf = ({ consumer, entry, epoch, stream, token }: Held) =>
    [group, stream, entry, consumer, `${consumer}@@${epoch}`, token] as const

  const done = backend.run("done", scripts.markDone, readDone)
  const release = backend.run("release", scripts.yieldLease, readRelease)
  const fail = backend.run("fail", scripts.recordFailure, readFail)
  const bury = backend.run("bury", scripts.deadLetterEntry, readBury)
  const buryMalformed = backend.run("bury", scripts.deadLetterMalformed, readFlag)
  const handOver = backend.run("hand over", scripts.handOverLease, readHandOver)
  const adopt = backend.run("look for what was handed over", scripts.adoptHandOver, readEntries)
  const given = backend.run("look for what was handed over", scripts.listHandOvers, readGiven)

  return {
    done: (held) => done(keysOf(held), argsOf(held)),
    release: (held) =>
      Effect.tap(release(keysOf(held), [...argsOf(held), channel]), (reply) =>
        Effect.sync(() => {
          if (reply === "Released") expire(StreamKeys.entryLease(held.stream, held.entry))
        })),
    fail: (held, attempt) =>
      Effect.map(
        fail(keysOf(held), [...argsOf(held), attempt ?? ""]),
        (reply) => reply === "NotOwner" ? reply : Number(reply)
      ),
    deadLetter: (held, reason) =>
      bury([...keysOf(held), deadLetters, StreamKeys.checkpoint(held.stream)], [...argsOf(held), reason]),
    deadLetterMalformed: (entry, consumer, reason) =>
      Effect.map(
        backend.withGroup(
          buryMalformed([input, failures, announced, deadLetters], [group, entry, consumer, reason])
        ),
        (buried) => buried === "1"
      ),
    handOver: (held, to, confirm) =>
      handOver(
        [...keysOf(held), StreamKeys.fence(held.stream), givenKey],
        [...argsOf(held), channel, to.consumer, to.session, millis(confirm)]
      ),
    handedOver: Effect.fnUntraced(function*(consumer, session) {
      const found: Array<Held & { readonly info: Readonly<Record<string, unknown>> }> = []
      for (const hint of yield* given([givenKey], [consumer, session])) {
        if (hint._tag !== "Given" || hint.consumer !== consumer || hint.session !== session) continue
        const { entry, epoch, stream, token } = hint
        const held: Held = { stream, entry, consumer, epoch, token }
        const [row] = yield* adopt([...keysOf(held), StreamKeys.checkpoint(stream)], argsOf(held))
        const content = row && parse(...row)
        if (content?._tag === "Announced") found.push({ ...held, info: content.info })
      }
      return found
    })
  }
}
