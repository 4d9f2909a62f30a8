/**
 * Ends the leases on data streams that are done, yielded, handed over or dead-lettered, and counts handler failures.
 * Part of `store`.
 */
import type { Ownership, Service } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Script } from "../../internal/client/script.ts"
import * as batchedRequest from "./batchedRequest.ts"
import * as keys from "./keys.ts"
import type { Failed } from "./replies.ts"
import * as scripts from "./scripts.generated.ts"
import { millis, type ServiceContext } from "./service.ts"

type Part = Pick<
  Service,
  "deadLetter" | "deadLetterMalformed" | "done" | "fail" | "handedOver" | "handOver" | "release"
>

/** Returns the keys and arguments for a lease that all scripts for owned data streams share. */
type Lease = Parameters<typeof scripts.markDone.pack>[0]["each"][number]

// Put the spread last, because V8 adds fields to a copy slowly, and there may be thousands of calls
const leaseOf = (ownership: Ownership): Lease => ({
  stream: ownership.stream,
  entry: ownership.entry,
  consumer: ownership.consumer,
  value: keys.entryValue(ownership),
  token: ownership.token,
  ...keys.ofLease(ownership)
})

/** `expire` makes Redis publish a key's expiry without delay. */
export const make = (context: ServiceContext, expire: (key: string) => void): Part => {
  const { announced, deadLetters, failures, group, input, parse, service } = context
  const handOvers = keys.handOvers(service)
  const shared = { input, failures, announced, deadLetters, handOvers, group, signals: keys.signalChannel(service) }

  /** Batches concurrent requests for owned data streams. */
  const forOwned = <L extends Lease, A>(
    operation: string,
    script: Script<typeof shared & { readonly each: ReadonlyArray<L> }, ReadonlyArray<A | Failed>>
  ) => {
    const call = context.run(operation, script)
    return batchedRequest.make(operation, (each: ReadonlyArray<L>) => call({ ...shared, each }))
  }

  const done = forOwned("done", scripts.markDone)
  const release = forOwned("release", scripts.yieldLeases)
  const fail = forOwned("fail", scripts.recordFailures)
  const deadLetter = forOwned("dead-letter", scripts.deadLetterAnnouncements)
  const handOver = forOwned("hand over", scripts.handOverLeases)
  const adopt = forOwned("adopt", scripts.adoptHandOvers)
  const deadLetterMalformed = context.run("dead-letter", scripts.deadLetterMalformed)
  const listHandOvers = context.run("list hand-overs", scripts.listHandOvers)

  return {
    done: (ownership) => done(leaseOf(ownership)),
    release: (ownership) =>
      Effect.tap(release(leaseOf(ownership)), (reply) =>
        Effect.sync(() => {
          if (reply === "Released") expire(keys.entryLease(ownership.stream, ownership.entry))
        })),
    fail: (ownership, { attempt, hasProgressed, streakEndsAfter = Duration.zero } = {}) =>
      Effect.map(
        fail({
          attempt: attempt ?? "",
          pause: Math.round(Duration.toMillis(streakEndsAfter)),
          progress: hasProgressed === true ? "1" : "",
          ...leaseOf(ownership)
        }),
        (reply) => reply === "NotOwner" ? reply : { count: reply[0], period: Duration.millis(reply[1]) }
      ),
    deadLetter: (ownership, reason) => deadLetter({ reason, ...leaseOf(ownership) }),
    deadLetterMalformed: (entry, consumer, reason) =>
      context.withGroup(
        deadLetterMalformed({ input, failures, deadLetters, group, entry, consumer, reason })
      ),
    handOver: (ownership, { consumer, session }, confirm) =>
      handOver({ receiver: consumer, session, confirm: millis(confirm), ...leaseOf(ownership) }),
    handedOver: Effect.fnUntraced(function*(consumer, session, isAdopted = () => false) {
      const own = (yield* listHandOvers({ handOvers, session }))
        .filter((handOver) => handOver.consumer === consumer && !isAdopted(handOver.entry))
        .map(({ consumer, entry, epoch, stream, token }): Ownership => ({ stream, entry, consumer, epoch, token }))
      const adopted = yield* Effect.forEach(own, (ownership) => adopt(leaseOf(ownership)), { concurrency: "unbounded" })
      return own.flatMap((ownership, i) => {
        const reply = adopted[i]!
        if (reply === "NotOwner") return []
        const [failures, [entry]] = reply
        const content = entry && parse(...entry)
        return content?._tag === "Announced" ? [{ ...ownership, failures, info: content.info }] : []
      })
    })
  }
}
