/**
 * Sends renewals, with one call for all leases that are due together. `store` uses it for core's `leaseRenewer`.
 * `renewLeases.lua` executes the call.
 */
import type { GuardRequest, GuardResult } from "@effect-simba/core/MutexStore"
import type { ProtocolError, StoreError } from "@effect-simba/core/SimbaError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { CommandSink } from "../client/commandSink.ts"
import { reader } from "../client/decode.ts"
import { backendError, fromReply } from "../client/errors.ts"
import { type Loaded, send } from "../client/script.ts"
import * as keys from "./keys.ts"
import { renewLeases } from "./scripts.generated.ts"

/** Builds the request without intermediate arrays, because it may contain thousands of leases. */
const argsOf = (script: string, requests: ReadonlyArray<GuardRequest>): ReadonlyArray<string> => {
  const args = [script, String(requests.length)]
  for (const { mutex } of requests) args.push(keys.owner(mutex))
  for (const { id } of requests) args.push(id)
  const isShared = requests.every(({ lease }) => lease === requests[0]!.lease)
  for (const { lease } of isShared ? requests.slice(0, 1) : requests) args.push(String(Duration.toMillis(lease)))
  return args
}

const read = reader("the reply from the script to renew", renewLeases.reply)

const renewed: GuardResult = { _tag: "Renewed" }

const resultsOf = (
  requests: ReadonlyArray<GuardRequest>,
  reply: unknown
): Exit.Exit<ReadonlyArray<GuardResult>, ProtocolError> => {
  const results: Array<GuardResult> = requests.map(() => renewed)
  return Exit.map(read(reply), (missed) => {
    for (const [index, kind, what] of missed) {
      results[index - 1] = kind === "owner"
        ? { _tag: "Lost", ownership: what }
        : { _tag: "Failed", error: fromReply("guard", what, [keys.owner(requests[index - 1]!.mutex)]) }
    }
    return results
  })
}

export const make = (sink: CommandSink["Service"], script: Loaded) =>
(
  requests: ReadonlyArray<GuardRequest>
): Effect.Effect<ReadonlyArray<GuardResult>, StoreError> =>
  Effect.callback((resume) => {
    let isAbandoned = false
    const cancel = send(
      sink,
      script,
      (script) => isAbandoned ? undefined : argsOf(script, requests),
      (failure, reply) =>
        resume(
          failure === undefined
            ? resultsOf(requests, reply)
            : Exit.fail(backendError("guard", failure.cause))
        )
    )
    // Cancel the request. If it were sent late, it could extend a lease that its owner no longer uses
    return Effect.sync(() => {
      isAbandoned = true
      cancel()
    })
  })
