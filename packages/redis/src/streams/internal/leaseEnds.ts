/** Ends stream leases: done, yielded, handed over, or in the dead letters. Counts failures of their handlers. */
import type { Held, Service } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Script } from "../../internal/client/script.ts"
import * as batchedRequest from "./batchedRequest.ts"
import { Flag, Natural } from "./codecs.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import { eachOf } from "./replies.ts"
import * as scripts from "./scripts.ts"
import { millis, type ServiceContext } from "./service.ts"

const NotOwner = Schema.Literal("NotOwner")

type Part = Pick<
  Service,
  "deadLetter" | "deadLetterMalformed" | "done" | "fail" | "handedOver" | "handOver" | "release"
>

/** `expire` makes Redis publish the expiry of a key at once. */
export const make = (context: ServiceContext, expire: (key: string) => void): Part => {
  const { announced, deadLetters, failures, group, input, parse, service } = context
  const handOvers = keys.handOvers(service)

  /** Requests of one moment for held leases share calls. `more` follows the arguments of a lease that all scripts have. */
  const forHeld = <A, E>(
    operation: string,
    script: Script<scripts.HeldKeys, scripts.HeldArgs>,
    reply: Schema.Codec<A, E>
  ) => {
    const call = context.run(operation, script, eachOf(reply))
    const ask = batchedRequest.make(
      operation,
      (items: ReadonlyArray<readonly [held: Held, more: ReadonlyArray<string | number>]>) =>
        call(
          [input, failures, announced, deadLetters, handOvers, ...items.flatMap(([held]) => keys.ofLease(held))],
          [
            group,
            keys.signalChannel(service),
            ...items.flatMap(([{ consumer, entry, epoch, stream, token }, more]) => [
              stream,
              entry,
              consumer,
              `${consumer}@@${epoch}`,
              token,
              ...more
            ])
          ]
        )
    )
    return (held: Held, ...more: ReadonlyArray<string | number>) => ask([held, more])
  }

  const release = forHeld("release", scripts.yieldLeases, Schema.Literals(["Released", "NotOwner"]))
  const fail = forHeld("fail", scripts.recordFailures, Schema.Union([NotOwner, Schema.Tuple([Natural, Natural])]))
  const deadLetter = forHeld(
    "dead-letter",
    scripts.deadLetterAnnouncements,
    Schema.Literals(["DeadLettered", "NotOwner"])
  )
  const handOver = forHeld("hand over", scripts.handOverLeases, Schema.Literals(["HandedOver", "NotOwner"]))
  const adopt = forHeld("adopt", scripts.adoptHandOvers, Schema.Union([NotOwner, StreamWire.Entries]))
  const deadLetterMalformed = context.run("dead-letter", scripts.deadLetterMalformed, Flag)
  const listHandOvers = context.run(
    "look for what was handed over",
    scripts.listHandOvers,
    Schema.Array(StreamWire.HandOver)
  )

  return {
    done: forHeld("done", scripts.markDone, Schema.Literals(["Done", "AlreadyDone", "NotOwner"])),
    release: (held) =>
      Effect.tap(release(held), (reply) =>
        Effect.sync(() => {
          if (reply === "Released") expire(keys.entryLease(held.stream, held.entry))
        })),
    fail: (held, { attempt, hasProgressed, streakEndsAfter = Duration.zero } = {}) =>
      Effect.map(
        fail(held, attempt ?? "", Math.round(Duration.toMillis(streakEndsAfter)), hasProgressed === true ? "1" : ""),
        (reply) => reply === "NotOwner" ? reply : { count: reply[0], period: Duration.millis(reply[1]) }
      ),
    deadLetter,
    deadLetterMalformed: (entry, consumer, reason) =>
      context.withGroup(
        deadLetterMalformed([input, failures, deadLetters], [group, entry, consumer, reason])
      ),
    handOver: (held, { consumer, session }, confirm) => handOver(held, consumer, session, millis(confirm)),
    handedOver: Effect.fnUntraced(function*(consumer, session) {
      const own = (yield* listHandOvers([handOvers], [session]))
        .filter((handOver) => handOver.consumer === consumer)
        .map(({ consumer, entry, epoch, stream, token }): Held => ({ stream, entry, consumer, epoch, token }))
      const adopted = yield* Effect.forEach(own, (held) => adopt(held), { concurrency: "unbounded" })
      return own.flatMap((held, i) => {
        const reply = adopted[i]!
        const content = reply === "NotOwner" || reply[0] === undefined ? undefined : parse(...reply[0])
        return content?._tag === "Announced" ? [{ ...held, info: content.info }] : []
      })
    })
  }
}
