/**
 * Decodes calls to `acquireAndRelease.lua`: their operations, and the reply to each. Used by `lockModel`, which lets
 * simulations check the script. The script's header comment lists the operations and their letters.
 */
import { operations } from "./scripts.generated.ts"

export interface Call {
  readonly kind: "acquire" | "confirm" | "release"
  readonly ownerKey: string
  readonly id: string
  /** The id queued by the release, or the empty string. */
  readonly requeue: string
  readonly reply: unknown
}

const operands: Readonly<Record<string, ReadonlyArray<string>>> = operations

/** Returns the operations in a command, or none if the command does not call the script. */
export const callsOf = (args: ReadonlyArray<string>, reply: unknown): ReadonlyArray<Call> => {
  if (args[0] !== "EVALSHA" && args[0] !== "EVAL") return []
  const keys = Number(args[2])
  const codes = /^([a-z]+) \w+ \d* \d*$/i.exec(args[3 + keys] ?? "")?.[1]
  if (codes === undefined || ![...codes.toLowerCase()].every((code) => code in operands)) return []
  if (keys !== 4 * codes.replace(/[A-Z]/g, "").length) return []
  let at = 3 + keys + 1
  let key = -1
  return [...codes].flatMap((letter, index) => {
    const code = letter.toLowerCase()
    // An upper-case letter means that the operation uses the same mutex as the previous one
    if (letter === code) key += 4
    const own = Object.fromEntries(operands[code]!.map((name) => [name, args[at++]!]))
    return code === "i" ? [] : [{
      kind: "twa".includes(code) ? "acquire" : code === "c" ? "confirm" : "release",
      ownerKey: args[key]!,
      id: own["id"]!,
      requeue: own["requeue"] ?? "",
      reply: codes.length > 1 && Array.isArray(reply) ? reply[index] : reply
    }]
  })
}
