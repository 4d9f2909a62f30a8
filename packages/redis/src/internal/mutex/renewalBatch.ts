/**
 * Sends renewals, with one call for all leases that are due together. `store` uses it for core's `leaseRenewer`.
 * `renewLeases.lua` executes the call.
 */
import type { GuardRequest, GuardResult, MutexStore } from "@effect-simba/core/MutexStore"
import type { ProtocolError, StoreError } from "@effect-simba/core/SimbaError"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import type { Args, CommandSink } from "../client/commandSink.ts"
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

type Guard = MutexStore["Service"]["guard"]

/** A shorter list is encoded again for each renewal, because that takes little time. */
const leastKept = 100

const renewTogether = (sink: CommandSink["Service"], script: Loaded): Guard => {
  const kept = new WeakMap<ReadonlyArray<GuardRequest>, () => ReadonlyArray<string>>()

  /** Encoding takes most of a renewal's time, and the same list is usually sent again. */
  const keptArgsOf = (requests: ReadonlyArray<GuardRequest>): Args => {
    if (requests.length < leastKept) return argsOf(script.sha, requests)
    const args = kept.get(requests) ?? (() => argsOf(script.sha, requests))
    kept.set(requests, args)
    return args
  }

  return (requests, done) => {
    let isAbandoned = false
    const cancel = send(
      sink,
      script,
      (script, isRepeated) => isAbandoned ? undefined : isRepeated ? argsOf(script, requests) : keptArgsOf(requests),
      (failure, reply) =>
        done(failure === undefined ? resultsOf(requests, reply) : Exit.fail(backendError("guard", failure.cause)))
    )
    // Cancel the request. If it were sent late, it could extend a lease that its owner no longer uses
    return () => {
      isAbandoned = true
      cancel()
    }
  }
}

const renewEach = (renew: Guard): Guard => (requests, done, onResult) => {
  const results: Array<GuardResult> = []
  let missing = requests.length
  if (missing === 0) done(Exit.succeed(results))
  const cancels = requests.map((request, index) =>
    renew([request], (exit) => {
      const result: GuardResult = Exit.isSuccess(exit)
        ? exit.value[0]!
        : { _tag: "Failed", error: Cause.squash(exit.cause) as StoreError }
      results[index] = result
      // Report each result as it arrives, because a hanging node must not delay the others
      onResult?.(index, result)
      if (--missing === 0) done(Exit.succeed(results))
    })
  )
  return () => {
    for (const cancel of cancels) cancel()
  }
}

/** With `perLease`, each lease has a call of its own, because a Cluster's nodes share the leases. */
export const make = (sink: CommandSink["Service"], script: Loaded, { perLease }: { readonly perLease: boolean }) => {
  const renew = renewTogether(sink, script)
  return perLease ? renewEach(renew) : renew
}
