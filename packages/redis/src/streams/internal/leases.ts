/** Takes and renews leases on data streams, in calls of limited size. Part of `store`. */
import type {
  RenewRequest,
  RenewResult,
  Service,
  TakeRequest,
  TakeResult
} from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { fromReply } from "../../internal/client/errors.ts"
import { inCalls } from "./batchedRequest.ts"
import * as keys from "./keys.ts"
import * as scripts from "./scripts.generated.ts"
import { millis, type ServiceContext } from "./service.ts"

const renewed: RenewResult = { _tag: "Renewed" }

/** Encodes the handler's state for `renewLeases.lua`. */
const handlerOf = ({ hasProgressed, isBusy }: RenewRequest): string =>
  `${isBusy === undefined ? "" : isBusy ? "busy " : "idle "}${hasProgressed === true ? "progress" : ""}`

/** Extracts the consumer from a lease's value. */
const nameOf = (value: string): string => {
  const at = value.indexOf("@@")
  return at <= 0 ? value : value.slice(0, at)
}

type TakeReply = (typeof scripts.takeLeases.reply.Type)[number]

const lacksGroup = (reply: TakeReply) => reply[0] === "error" && reply[1].includes("NOGROUP")

export const make = (context: ServiceContext): Pick<Service, "renew" | "take"> => {
  const { announced, deadLetters, failures, group, input } = context
  const takeScript = context.run("take", scripts.takeLeases)
  const renewScript = context.run("renew", scripts.renewLeases)

  const toResult = (reply: TakeReply): TakeResult => {
    switch (reply[0]) {
      case "Taken":
        return { _tag: "Taken", token: reply[1], failures: reply[2] }
      case "Occupied":
        return {
          _tag: "Occupied",
          owner: nameOf(reply[1]),
          timeLeft: reply[2] === "-1" ? Duration.infinity : Duration.millis(Number(reply[2]))
        }
      case "NotIdle":
      case "Undelivered":
      case "Gone":
        return { _tag: reply[0] }
      case "DeadLettered":
        return { _tag: "DeadLettered", failures: reply[1] }
      case "error":
        // Without a group, the entry is undelivered: a new group delivers all entries again
        return lacksGroup(reply) ? { _tag: "Undelivered" } : { _tag: "Failed", error: fromReply("take", reply[1]) }
    }
  }

  const takeAll = (requests: ReadonlyArray<TakeRequest>) =>
    Effect.gen(function*() {
      const replies = yield* takeScript({
        input,
        failures,
        announced,
        deadLetters,
        group,
        each: requests.map((request) => ({
          stream: request.stream,
          entry: request.entry,
          value: keys.entryValue(request),
          consumer: request.consumer,
          // At least 1 ms, because Redis rejects an expiry of zero
          lease: millis(request.lease),
          // Unlike a lease, these durations may be zero, so do not use `millis`
          minIdle: Math.round(Duration.toMillis(request.minIdle)),
          maxFailures: request.maxFailures,
          period: Math.round(Duration.toMillis(request.deadLetterAfter ?? Duration.zero)),
          pause: Math.round(Duration.toMillis(request.streakEndsAfter ?? Duration.zero)),
          // Put the spread last, because V8 adds fields to a copy slowly
          ...keys.ofLease(request)
        }))
      })
      if (replies.some(lacksGroup)) yield* context.prepare
      return replies.map(toResult)
    })

  /** All leases in one call belong to the same consumer. */
  const renewAll = (holdings: ReadonlyArray<RenewRequest>, lease: Duration.Duration) =>
    Effect.map(
      renewScript({
        input,
        failures,
        group,
        consumer: holdings[0]!.consumer,
        lease: millis(lease),
        each: holdings.map((request) => ({
          entryLease: keys.entryLease(request.stream, request.entry),
          streamLease: keys.streamLease(request.stream),
          entry: request.entry,
          epoch: request.epoch,
          token: request.token,
          handler: handlerOf(request)
        }))
      }),
      (missed) => {
        const results: Array<RenewResult> = holdings.map(() => renewed)
        for (const [index, reason] of missed) results[index - 1] = { _tag: "Lost", reason }
        return results
      }
    )

  return {
    take: (requests) =>
      Effect.andThen(
        Effect.forEach(requests, ({ stream }) => context.admit("take", stream), { discard: true }),
        inCalls(requests, takeAll)
      ),
    renew: (holdings, lease) => inCalls(holdings, (holdings) => renewAll(holdings, lease))
  }
}
