/** Renewals on their way to Redis: one call for all leases that are renewed together. */
import type { GuardRequest, GuardResult } from "@effect-simba/core/MutexStore"
import type { BackendError, ProtocolError } from "@effect-simba/core/SimbaError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { CommandSink } from "../client/commandSink.ts"
import { reading } from "../client/decode.ts"
import { backendError, fromReply, isForgotten } from "../client/errors.ts"
import * as RedisKeys from "./keys.ts"
import * as RedisWire from "./messages.ts"
import { renewLeases } from "./scripts.ts"

const readGuard = reading("the reply of the guard script", RedisWire.GuardReply)

const renewed: GuardResult = { _tag: "Renewed" }

const argsOf = (script: string, requests: ReadonlyArray<GuardRequest>): ReadonlyArray<string> => {
  const args = [script, String(requests.length)]
  for (const request of requests) args.push(RedisKeys.owner(request.mutex))
  for (const request of requests) args.push(request.id)
  const lease = requests[0]?.lease
  if (lease === undefined) return args
  const millis = String(Duration.toMillis(lease))
  if (requests.every((request) => request.lease === lease || Duration.equals(request.lease, lease))) args.push(millis)
  else for (const request of requests) args.push(String(Duration.toMillis(request.lease)))
  return args
}

const resultsOf = (
  requests: ReadonlyArray<GuardRequest>,
  reply: unknown
): Exit.Exit<ReadonlyArray<GuardResult>, ProtocolError> => {
  const results = requests.map((): GuardResult => renewed)
  // The usual reply by hand, anything else by the codec
  if (Array.isArray(reply) && reply.length === 0) return Exit.succeed(results)
  return Exit.map(readGuard(reply), (missed) => {
    for (const [index, kind, what] of missed) {
      results[index - 1] = kind === "owner"
        ? { _tag: "Lost", ownership: what }
        : { _tag: "Failed", error: fromReply("guard", what) }
    }
    return results
  })
}

/** `sha` is that of the script, which the server knows. */
export const make = (direct: CommandSink, sha: string) =>
(
  requests: ReadonlyArray<GuardRequest>
): Effect.Effect<ReadonlyArray<GuardResult>, BackendError | ProtocolError> =>
  Effect.callback((resume) => {
    let isAbandoned = false
    let cancel: (() => void) | undefined
    const send = (isKnown: boolean) => {
      cancel = direct.send(
        isKnown ? "EVALSHA" : "EVAL",
        argsOf(isKnown ? sha : renewLeases.lua, requests),
        (failure, reply) => {
          if (failure === undefined) resume(resultsOf(requests, reply))
          else if (!isKnown || !isForgotten(failure.cause)) resume(Exit.fail(backendError("guard", failure.cause)))
          else if (!isAbandoned) send(false)
        }
      )
    }
    send(true)
    // A renewal that goes out late would give a lease that was given up another life
    return Effect.sync(() => {
      isAbandoned = true
      cancel?.()
    })
  })
