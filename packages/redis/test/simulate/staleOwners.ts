/** A checker for the scripts that act for data streams' owners. Each may act only for the current owner. */
import type { Checker, Simulation } from "@effect-simba/testkit"
import * as StreamKeys from "../../src/streams/internal/keys.ts"

interface Claim {
  readonly stream: string
  readonly token: string
}

type Stream = Parameters<typeof StreamKeys.streamLease>[0]

const tokenOf = (leaseValue: string) => leaseValue.slice(leaseValue.lastIndexOf("@@") + 2)

const isAct = (reply: unknown) =>
  reply !== "NotOwner" && reply !== "AlreadyDone" && !(Array.isArray(reply) && reply[0] === "error")

/** Infers which owners a command acted for from its arguments and reply. */
const actsOf = (service: Parameters<typeof StreamKeys.input>[0], streams: ReadonlyArray<string>) => {
  const [input, failures, handOvers] = [StreamKeys.input, StreamKeys.failures, StreamKeys.handOvers].map((key) =>
    key(service)
  )
  const byLease = new Map(streams.map((stream) => [StreamKeys.streamLease(stream as Stream), stream]))

  /** Reads calls of scripts that end or adopt leases, whose KEYS and ARGV are those of `ownerCheck.lua`. */
  const ended = (args: ReadonlyArray<string>, first: number, replies: ReadonlyArray<unknown>) => {
    const each = (args.length - first - 2) / replies.length
    return replies.flatMap((reply, i): ReadonlyArray<Claim> => {
      return isAct(reply) ? [{ stream: args[12 + 5 * i]!, token: args[first + 5 + i * each]! }] : []
    })
  }

  /** Reads calls that commit. KEYS: failures, then three per lease. ARGV: retention, then five per lease. */
  const committed = (args: ReadonlyArray<string>, first: number, replies: ReadonlyArray<unknown>) =>
    replies.flatMap((reply, i): ReadonlyArray<Claim> => {
      const stream = byLease.get(args[4 + 3 * i]!)
      const isMine = stream !== undefined && reply === "Committed"
      return isMine ? [{ stream, token: tokenOf(args[first + 1 + 5 * i]!) }] : []
    })

  /**
   * Reads calls that renew. KEYS: input, failures, then two per lease. ARGV: group, consumer, lease duration, then four
   * per lease. The reply lists the leases that were not renewed.
   */
  const renewed = (args: ReadonlyArray<string>, first: number, missed: ReadonlyArray<unknown>) => {
    const refused = new Set(missed.map((one) => Number(Array.isArray(one) ? one[0] : one)))
    return Array.from({ length: (first - 5) / 2 }, (_, i): ReadonlyArray<Claim> => {
      const stream = byLease.get(args[6 + 2 * i]!)
      const isMine = stream !== undefined && !refused.has(i + 1)
      return isMine ? [{ stream, token: args[first + 5 + 4 * i]! }] : []
    }).flat()
  }

  return (args: ReadonlyArray<string>, reply: unknown): ReadonlyArray<Claim> => {
    const [command, , count] = args
    if (command !== "EVALSHA" && command !== "EVAL") return []
    const first = 3 + Number(count)
    if (!Array.isArray(reply)) {
      const stream = byLease.get(args[3] ?? "")
      return stream === undefined || reply !== "DeadLettered" ? [] : [{ stream, token: tokenOf(args[first]!) }]
    }
    if (args[7] === handOvers) return ended(args, first, reply)
    if (args[3] === failures && byLease.has(args[4]!)) return committed(args, first, reply)
    return args[3] === input && args[4] === failures && byLease.has(args[6]!) ? renewed(args, first, reply) : []
  }
}

export const staleOwnersAreRefused = (
  service: Parameters<typeof StreamKeys.input>[0],
  streams: ReadonlyArray<string>
): Checker.Checker => ({
  name: "stale owners are refused",
  start: (view) => {
    const acts = actsOf(service, streams)
    return {
      onEvent: (event: Simulation.Event) => {
        if (event._tag !== "Command") return
        // At this event, `view` still shows the owners before the command
        for (const { stream, token } of acts(event.command.args, event.command.reply)) {
          const owner = view.owner(stream)?.id
          if (owner === `${stream}#${token}`) continue
          view.violated(
            `a command of ${stream}#${token} succeeded although the owner of ${stream} was ${owner ?? "nobody"}`
          )
        }
      }
    }
  }
})
